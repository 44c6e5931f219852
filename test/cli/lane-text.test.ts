import { describe, expect, it } from 'vitest';
import { laneLines } from '../../electron/cli/lane-text.ts';
import { statusText } from '../../electron/cli/status-text.ts';
import type { LaneState } from '../../shared/state.ts';
import { sampleState } from '../support/fake-runtime.ts';

const NOW = Date.parse('2026-03-04T09:00:41.000Z');
const FREE: LaneState = {
  backend: 'router',
  configured: true,
  path: '/gates/127.0.0.1_8080.lock',
  width: 1,
  held: false,
  holders: [],
  waiting: 0,
};
const WRITER = {
  pid: 42,
  command: 'python3 agent.py',
  session: 'writer',
  model: 'coder-9b',
  class: 'interactive',
  turn: 't1',
  acquiredAt: '2026-03-04T09:00:00.000Z',
} as const;
const STRANGER = {
  pid: null,
  command: null,
  session: null,
  model: null,
  class: null,
  turn: null,
  acquiredAt: null,
};

const lines = (...lanes: readonly Partial<LaneState>[]): string[] =>
  laneLines(
    lanes.map((lane) => ({ ...FREE, ...lane })),
    NOW,
    { color: false },
  );

describe('landlord status: lanes', () => {
  it('say who has them, for what and how long, and who waits', () => {
    expect(lines({ held: true, holders: [WRITER], waiting: 2 })).toEqual([
      'router  held  session writer, coder-9b, interactive, pid 42 python3 agent.py, for 41 s; 2 waiting',
    ]);
    expect(lines({}, { backend: 'big', width: 3, holders: [WRITER] })[1]).toContain(
      '2 of 3 free  session writer',
    );
    expect(lines({ width: 2, held: true, holders: [WRITER, WRITER] })[0]).toContain('all 2 held');
  });

  it('say unknown where it is', () => {
    expect(lines({ held: null })).toEqual(['router  unknown']);
    expect(lines({ held: true, holders: [STRANGER] })).toEqual([
      'router  held  session unknown, a process that can’t be seen, age unknown',
    ]);
  });

  it('show no escape sequence of a session', () => {
    const [line] = lines({ held: true, holders: [{ ...WRITER, session: '\u001b[2J' }] });
    expect(line).toContain('session \\u{1b}[2J');
  });

  it('are left out where none is set or used', () => {
    const look = { color: false, unicode: false, columns: 100 };
    const unused = { ...FREE, configured: false };
    expect(statusText({ ...sampleState(), lanes: [unused] }, [], NOW, look)).not.toContain('Lanes');
    expect(statusText({ ...sampleState(), lanes: [FREE] }, [], NOW, look)).toContain(
      'Lanes\n  router  free\n',
    );
  });
});
