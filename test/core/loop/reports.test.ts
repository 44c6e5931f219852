import { describe, expect, it } from 'vitest';
import { ReportDesk } from '../../../electron/core/loop/reports.ts';
import type { ReportedEvent } from '../../../electron/core/runtime-api.ts';
import type { NewEvent } from '../../../shared/events.ts';
import { backendSetting } from '../../support/backend-setting.ts';

const BACKENDS = [
  backendSetting({ name: 'router', url: 'http://localhost:8080' }),
  backendSetting({ name: 'big', url: 'http://127.0.0.1:8081', front: 8082 }),
  backendSetting({ name: 'far', url: 'http://192.0.2.7:8083' }),
];

function report(change: Partial<ReportedEvent>): ReportedEvent {
  return {
    kind: 'deflected',
    reason: 'busy',
    lane: null,
    session: null,
    model: null,
    numbers: {},
    ...change,
  };
}

function desk(): {
  take: (event: Partial<ReportedEvent>) => void;
  told: NewEvent[];
  clock: { nowMs: number };
} {
  const told: NewEvent[] = [];
  const clock = { nowMs: 0 };
  const log = { tell: (event: NewEvent) => void told.push(event), committed: async () => undefined };
  const reports = new ReportDesk(log, () => BACKENDS, {
    monotonicMs: () => clock.nowMs,
  });
  return { take: (event) => void reports.take(report(event)), told, clock };
}

describe('what other processes report', () => {
  it('gets the name of the backend whose lane it is, by either of its ports', () => {
    const { take, told } = desk();
    take({ lane: '127.0.0.1_8080', model: 'm', session: 's', numbers: { waitedMs: 1 } });
    take({ lane: '127.0.0.1_8082' });
    take({ lane: '127.0.0.1_8083', model: 'm' });
    take({});
    expect(told).toEqual([
      {
        kind: 'deflected',
        reason: 'busy',
        backend: 'router',
        model: 'router/m',
        session: 's',
        numbers: { waitedMs: 1 },
      },
      { kind: 'deflected', reason: 'busy', backend: 'big', numbers: {} },
      { kind: 'deflected', reason: 'busy', numbers: {} },
      { kind: 'deflected', reason: 'busy', numbers: {} },
    ]);
  });

  it('is one event for a trouble that many processes meet, and another when it lasts (rule 17)', () => {
    const { take, told, clock } = desk();
    const trouble = { kind: 'fail_open', reason: 'The disk is full.', lane: '127.0.0.1_8080' } as const;
    for (const session of ['a', 'b', 'c']) take({ ...trouble, session });
    expect(told).toHaveLength(1);
    take({ ...trouble, lane: '127.0.0.1_8082' });
    expect(told).toHaveLength(2);
    clock.nowMs = 600_000;
    take(trouble);
    expect(told).toHaveLength(3);
  });

  it('is every deflection, however alike they are (rule 21)', () => {
    const { take, told } = desk();
    for (let turn = 0; turn < 3; turn += 1) take({ session: 'a' });
    expect(told).toHaveLength(3);
  });
});
