import { mkdirSync, renameSync, rmSync, symlinkSync, unlinkSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { type LaneFiles, laneFiles, slotFiles } from '../../../electron/core/gate/lane-files.ts';
import { fileLocker } from '../../../electron/core/gate/locker.ts';
import { enqueue, leave, newcomerName, ticketName } from '../../../electron/core/gate/queue.ts';
import { takeLanes } from '../../../electron/core/gate/take-lanes.ts';
import { PRIVATE_MODES, releaseSlot } from '../../../electron/core/gate/take-slot.ts';
import { runToEnd, tempFolder } from '../../support/gate.ts';

const loaded = fileLocker();
if (!loaded.ok) throw new Error(loaded.error.message);
const real = loaded.value;

const foreign = (path: string): number | null => runToEnd(['flock', '-n', path, 'true']).status;

/** What became of a newcomer's try; a lock that it took is held by nobody else, and given back. */
function tried(lane: LaneFiles, locker = real): 'taken' | 'busy' | 'queued' | 'unusable' {
  const take = takeLanes({
    lanes: [lane],
    modes: PRIVATE_MODES,
    locker,
    place: newcomerName('interactive'),
    report: () => {},
  });
  if (take.kind === 'busy') return take.queued ? 'queued' : 'busy';
  if (take.kind === 'unusable') return 'unusable';
  for (const { lock, files } of take.slots) {
    expect(foreign(files.lock), 'another can lock the file at its path').toBe(1);
    releaseSlot(lock, locker);
  }
  return 'taken';
}

/** Only for the clock: what the file system does keeps the real time. */
function aMinuteLater(): void {
  vi.useFakeTimers({ toFake: ['Date'], now: Date.now() + 60_000 });
}

afterEach(() => vi.useRealTimers());

/** A lane that was taken, and taken again when nothing had changed in its folder for a while. */
function calmLane(root: string): LaneFiles {
  const lane = laneFiles(root, '127.0.0.1_1');
  expect(tried(lane)).toBe('taken');
  aMinuteLater();
  expect([tried(lane), tried(lane)]).toEqual(['taken', 'taken']);
  return lane;
}

describe('a lane in whose folder nothing changes', () => {
  it('is taken by its lock alone, and not where another has it', () => {
    using folder = tempFolder();
    const lane = calmLane(folder.path);
    const busy = { ...real, tryLock: () => ({ kind: 'busy' as const }) };
    expect([tried(lane), tried(lane, busy), tried(lane)]).toEqual(['taken', 'busy', 'taken']);
    expect(foreign(slotFiles(lane, 0).lock)).toBe(0);
  });

  it('whose lock is replaced is taken by the new one (rule 19)', () => {
    using folder = tempFolder();
    const lane = calmLane(folder.path);
    const other = join(folder.path, 'other');
    writeFileSync(other, '');
    renameSync(other, slotFiles(lane, 0).lock);
    expect([tried(lane), tried(lane)]).toEqual(['taken', 'taken']);
  });

  it('and whose folder is moved away is taken where others look for it', () => {
    using folder = tempFolder();
    const root = join(folder.path, 'gates');
    const lane = calmLane(join(root));
    renameSync(root, join(folder.path, 'old'));
    expect([tried(lane), tried(lane)]).toEqual(['taken', 'taken']);
    rmSync(root, { recursive: true });
    expect(tried(lane)).toBe('taken');
  });

  it('goes to whoever has come to wait for it', () => {
    using folder = tempFolder();
    const lane = calmLane(folder.path);
    const ticket = enqueue(lane, ticketName('interactive', 1, 1, 'a'), PRIVATE_MODES, real);
    expect([tried(lane), foreign(slotFiles(lane, 0).lock)]).toEqual(['queued', 0]);
    leave(lane, ticket);
    expect(tried(lane)).toBe('taken');
  });

  it('and that a link leads to is looked at where the link leads', () => {
    using folder = tempFolder();
    const root = join(folder.path, 'gates');
    mkdirSync(join(folder.path, 'elsewhere'));
    symlinkSync('elsewhere', root);
    const lane = calmLane(root);
    const ticket = enqueue(lane, ticketName('interactive', 1, 1, 'a'), PRIVATE_MODES, real);
    expect(tried(lane)).toBe('queued');
    leave(lane, ticket);
    writeFileSync(join(root, 'other'), '');
    renameSync(join(root, 'other'), slotFiles(lane, 0).lock);
    expect(tried(lane)).toBe('taken');
  });

  it('whose lock comes out of a backup, the folder with the times that it had, is taken by the new one', () => {
    using folder = tempFolder();
    const longAgo = new Date(Date.now() - 3_600_000);
    utimesSync(folder.path, longAgo, longAgo);
    const lane = laneFiles(folder.path, '127.0.0.1_1');
    writeFileSync(slotFiles(lane, 0).lock, '');
    utimesSync(folder.path, longAgo, longAgo);
    aMinuteLater();
    expect([tried(lane), tried(lane)]).toEqual(['taken', 'taken']);
    const { lock } = slotFiles(lane, 0);
    writeFileSync(`${lock}.new`, '');
    unlinkSync(lock);
    renameSync(`${lock}.new`, lock);
    utimesSync(folder.path, longAgo, longAgo);
    expect(tried(lane)).toBe('taken');
  });

  it('with a line in it already is looked at each time', () => {
    using folder = tempFolder();
    const lane = laneFiles(folder.path, '127.0.0.1_1');
    const ticket = enqueue(lane, ticketName('batch', 1, 1, 'a'), PRIVATE_MODES, real);
    // Taken before a batch ticket; then an interactive one comes into the same line.
    expect(tried(lane)).toBe('taken');
    aMinuteLater();
    expect(tried(lane)).toBe('taken');
    const first = enqueue(lane, ticketName('interactive', 1, 1, 'a'), PRIVATE_MODES, real);
    expect(tried(lane)).toBe('queued');
    leave(lane, first);
    leave(lane, ticket);
  });
});
