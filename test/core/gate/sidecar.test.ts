import { mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { parseSidecar, readSidecar, sidecarOf, writeSidecar } from '../../../electron/core/gate/sidecar.ts';
import { tempFolder } from '../../support/gate.ts';

const AT = Date.parse('2026-03-04T05:06:07.000Z');
const ABOUT = { session: 'writer', model: 'qwen-27b', class: 'interactive', turn: 't1' } as const;

describe('the sidecar', () => {
  it('has the fields other programs read, with the process’s own start time', () => {
    using folder = tempFolder();
    const path = join(folder.path, '127.0.0.1_8080.json');
    writeSidecar(path, sidecarOf(ABOUT, AT), 0o600);
    const written: unknown = JSON.parse(readFileSync(path, 'utf8'));
    const ticks = Number(readFileSync('/proc/self/stat', 'utf8').split(') ')[1]?.split(' ')[19]);
    expect(written).toEqual({
      schema: 'vram-landlord/gate/1',
      pid: process.pid,
      startTime: ticks,
      session: 'writer',
      model: 'qwen-27b',
      class: 'interactive',
      turn: 't1',
      acquiredAt: '2026-03-04T05:06:07.000Z',
    });
    expect(statSync(path).mode & 0o777).toBe(0o600);
  });

  it('replaces the one before and leaves nothing else behind', () => {
    using folder = tempFolder();
    const path = join(folder.path, 'x.json');
    for (const session of ['a', 'b', 'c']) writeSidecar(path, sidecarOf({ ...ABOUT, session }, AT), 0o666);
    expect(readSidecar(path)).toMatchObject({ kind: 'read', sidecar: { session: 'c' } });
    expect(readdirSync(folder.path)).toEqual(['x.json']);
    expect(statSync(path).mode & 0o777).toBe(0o666);
  });

  it('throws and leaves nothing where it can not be written', () => {
    using folder = tempFolder();
    const path = join(folder.path, 'x.json');
    mkdirSync(join(path, 'inside'), { recursive: true });
    expect(() => writeSidecar(path, sidecarOf(ABOUT, AT), 0o600)).toThrow();
    expect(readdirSync(folder.path)).toEqual(['x.json']);
  });

  it('is absent, or garbage, or read, and never a throw', () => {
    using folder = tempFolder();
    const path = join(folder.path, 'x.json');
    expect(readSidecar(path)).toEqual({ kind: 'absent' });
    writeFileSync(path, '');
    expect(readSidecar(path)).toEqual({ kind: 'absent' });
    for (const text of [
      '{',
      '[]',
      'null',
      '{"schema":"vram-landlord/gate/1"}',
      '{"schema":"other","pid":1,"acquiredAt":"2026-01-01"}',
    ]) {
      writeFileSync(path, text);
      expect(readSidecar(path), text).toEqual({ kind: 'garbage' });
    }
  });

  it('accepts another program’s, which may say less', () => {
    const least =
      '{"schema":"vram-landlord/gate/1","pid":7,"acquiredAt":"2026-01-01T00:00:00Z","class":"odd","session":3}';
    expect(parseSidecar(least)).toMatchObject({
      pid: 7,
      startTime: null,
      session: null,
      class: null,
      turn: null,
    });
    expect(parseSidecar(least.replace('7', '-7'))).toBeNull();
    expect(parseSidecar(least.replace('2026-01-01T00:00:00Z', 'soon'))).toBeNull();
  });

  it('keeps an endless session’s name from filling the disk', () => {
    expect(sidecarOf({ ...ABOUT, session: 'x'.repeat(9999) }, AT).session).toHaveLength(512);
  });
});
