import { existsSync, mkdirSync, readdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { laneFiles } from '../../../electron/core/gate/lane-files.ts';
import { fileLocker } from '../../../electron/core/gate/locker.ts';
import {
  enqueue,
  isBehind,
  leave,
  namesAhead,
  newcomerName,
  ticketName,
} from '../../../electron/core/gate/queue.ts';
import { PRIVATE_MODES } from '../../../electron/core/gate/take-slot.ts';
import { tempFolder } from '../../support/gate.ts';

const loaded = fileLocker();
if (!loaded.ok) throw new Error(loaded.error.message);
const locker = loaded.value;

describe('the order of those who wait', () => {
  it('is interactive before batch, then by arrival, whatever the names of processes', () => {
    const batch = ticketName('batch', 1000, 1, 'a');
    const late = ticketName('interactive', 900_000, 1, 'a');
    const early = ticketName('interactive', 9.5, 99999, 'z');
    const names = [batch, late, 'README', early, '.x'];
    expect(namesAhead(names, ticketName('batch', 1e12, 5, 'q'))).toEqual([early, late, batch]);
    expect(namesAhead(names, early)).toEqual([]);
  });

  it('puts a newcomer behind its own class and before the lower one', () => {
    const names = [ticketName('interactive', 5, 1, 'a'), ticketName('batch', 5, 1, 'a')];
    expect(namesAhead(names, newcomerName('interactive'))).toEqual([names[0]]);
    expect(namesAhead(names, newcomerName('batch'))).toEqual(names);
  });

  it('sorts arrivals of a machine that is up for years', () => {
    const a = ticketName('batch', 9e10, 1, 'a');
    const b = ticketName('batch', 1e11, 1, 'a');
    expect(a < b).toBe(true);
  });
});

describe('tickets', () => {
  it('count while they are locked, and are gone with their folder after', () => {
    using folder = tempFolder();
    const lane = laneFiles(folder.path, '127.0.0.1_1');
    const ticket = enqueue(lane, ticketName('interactive', 1, 1, 'a'), PRIVATE_MODES, locker);
    expect(isBehind(lane, newcomerName('batch'), locker)).toBe(true);
    expect(isBehind(lane, ticket.name, locker)).toBe(false);
    leave(lane, ticket);
    expect(existsSync(lane.queue)).toBe(false);
    expect(isBehind(lane, newcomerName('batch'), locker)).toBe(false);
  });

  it('of processes that died hold nobody up, and whoever meets them removes them (rule 16)', () => {
    using folder = tempFolder();
    const lane = laneFiles(folder.path, '127.0.0.1_1');
    mkdirSync(lane.queue);
    for (const at of [1, 2, 3]) writeFileSync(join(lane.queue, ticketName('interactive', at, 77, 'a')), '');
    const ticket = enqueue(lane, ticketName('interactive', 9, 1, 'a'), PRIVATE_MODES, locker);
    expect(isBehind(lane, ticket.name, locker)).toBe(false);
    expect(readdirSync(lane.queue)).toEqual([ticket.name]);
    leave(lane, ticket);
    expect(existsSync(lane.queue)).toBe(false);
  });

  it('are neither made nor removed where a link in the folder’s place leads', () => {
    using folder = tempFolder();
    const lane = laneFiles(folder.path, '127.0.0.1_8080');
    const elsewhere = join(folder.path, 'elsewhere');
    mkdirSync(elsewhere);
    const lost = ticketName('interactive', 1, 1, 'dead');
    writeFileSync(join(elsewhere, lost), '');
    symlinkSync(elsewhere, lane.queue);
    const own = ticketName('interactive', 2, 1, 'own');
    expect(isBehind(lane, own, locker)).toBe(false);
    expect(() => enqueue(lane, own, PRIVATE_MODES, locker)).toThrow('is no folder');
    expect(readdirSync(elsewhere)).toEqual([lost]);
  });

  it('leave the folder to others who wait', () => {
    using folder = tempFolder();
    const lane = laneFiles(folder.path, '127.0.0.1_1');
    const first = enqueue(lane, ticketName('batch', 1, 1, 'a'), PRIVATE_MODES, locker);
    const second = enqueue(lane, ticketName('batch', 2, 1, 'b'), PRIVATE_MODES, locker);
    leave(lane, first);
    expect(isBehind(lane, newcomerName('batch'), locker)).toBe(true);
    leave(lane, second);
    expect(existsSync(lane.queue)).toBe(false);
  });
});
