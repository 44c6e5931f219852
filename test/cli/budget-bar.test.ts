import { describe, expect, it } from 'vitest';
import { budgetCells, drawBar, legend } from '../../electron/cli/budget-bar.ts';
import type { TenantState } from '../../shared/state.ts';

const held = (
  kind: TenantState['kind'],
  measuredBytes: number | null,
): Pick<TenantState, 'kind' | 'measuredBytes'> => ({ kind, measuredBytes });

describe('the budget bar', () => {
  it('shows who holds what in proportion, and the floor at the free end', () => {
    const device = { totalBytes: 100, usedBytes: 70, floorBytes: 10 };
    const tenants = [held('model', 40), held('desktop', 20), held('foreign', 5)];
    const cells = budgetCells(device, tenants, 20) ?? [];
    expect(drawBar(cells, false)).toBe('[########====++....--]');
    expect(legend(cells, false)).toBe('# models  = desktop  + others  . free  - free, kept for the desktop');
  });

  it('shows a breached floor as used to the end', () => {
    const cells =
      budgetCells({ totalBytes: 100, usedBytes: 95, floorBytes: 10 }, [held('model', 80)], 20) ?? [];
    expect(drawBar(cells, false)).toBe('[################+++-]');
  });

  it('is not drawn from unknown figures: an empty bar would look like free memory', () => {
    expect(budgetCells({ totalBytes: 100, usedBytes: null, floorBytes: 10 }, [], 20)).toBeNull();
    expect(budgetCells({ totalBytes: null, usedBytes: 5, floorBytes: null }, [], 20)).toBeNull();
  });

  it('never shows more than the device has in use, whatever its holders claim', () => {
    const device = { totalBytes: 100, usedBytes: 50, floorBytes: null };
    const cells =
      budgetCells(device, [held('model', 90), held('desktop', 90), held('reserved', null)], 10) ?? [];
    expect(drawBar(cells, false)).toBe('[#####.....]');
  });
});
