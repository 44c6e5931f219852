import { describe, expect, it } from 'vitest';
import { type GateReport, oncePerReason } from '../../../electron/core/gate/reports.ts';

const REPORT: GateReport = { reason: 'disk_full', lane: 'a', path: '/a', message: 'full', errno: 'ENOSPC' };

describe('what the gate tells', () => {
  it('is one report a kind and lane, not one a turn (rule 17)', () => {
    const told: GateReport[] = [];
    const tell = oncePerReason();
    for (let turn = 0; turn < 100; turn += 1) tell(REPORT, (report) => told.push(report));
    tell({ ...REPORT, lane: 'b' }, (report) => told.push(report));
    tell({ ...REPORT, reason: 'lock_failed' }, (report) => told.push(report));
    expect(told).toHaveLength(3);
  });

  it('does not stop a turn whose listener fails', () => {
    expect(() =>
      oncePerReason()(REPORT, () => {
        throw new Error('no');
      }),
    ).not.toThrow();
  });
});
