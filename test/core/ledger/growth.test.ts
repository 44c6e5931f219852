import { describe, expect, it } from 'vitest';
import { growthSentence, look, mostGrown, noGrowth } from '../../../electron/core/ledger/growth.ts';
import type { TenantState } from '../../../shared/state.ts';

const GB = 1_000_000_000;

function tenant(
  kind: TenantState['kind'],
  name: string,
  gb: number | null,
  parts: Record<string, number> = {},
): TenantState {
  return {
    id: name,
    kind,
    name,
    deviceId: 'gpu',
    predictedBytes: null,
    measuredBytes: gb === null ? null : gb * GB,
    pids: [],
    parts: Object.entries(parts).map(([part, size]) => ({ name: part, bytes: size * GB, pid: null })),
  };
}

function grown(before: readonly TenantState[], after: readonly TenantState[]): string | null {
  const memory = look(look(noGrowth(), before, 0), after, 5_000);
  return growthSentence(mostGrown(memory, 5_000, 10_000));
}

describe('who grew most', () => {
  it('names the program of the desktop that did', () => {
    expect(
      grown(
        [tenant('desktop', 'the desktop', 2, { firefox: 1, kwin: 0.5 }), tenant('model', 'r/a', 8)],
        [tenant('desktop', 'the desktop', 3.1, { firefox: 1.9, kwin: 0.7 }), tenant('model', 'r/a', 8.1)],
      ),
    ).toBe('firefox grew by 900 MB');
  });

  it('names the desktop itself where no program stands out', () => {
    const before = [tenant('desktop', 'the desktop', 2, { firefox: 1 })];
    expect(grown(before, [tenant('desktop', 'the desktop', 4, { firefox: 1 })])).toBe(
      'the desktop grew by 2.0 GB',
    );
  });

  it('takes a newcomer as grown from nothing, and one whose size was unknown not at all (rule 5)', () => {
    const desktop = tenant('desktop', 'the desktop', 1);
    expect(grown([desktop], [desktop, tenant('foreign', 'blender', 3)])).toBe('blender grew by 3.0 GB');
    const unknown = tenant('model', 'r/a', null);
    expect(grown([desktop, unknown], [desktop, tenant('model', 'r/a', 9)])).toBeNull();
  });

  it('says nothing of a shrinking or of crumbs', () => {
    expect(grown([tenant('foreign', 'a', 3)], [tenant('foreign', 'a', 2)])).toBeNull();
    expect(grown([tenant('foreign', 'a', 3)], [tenant('foreign', 'a', 3.05)])).toBeNull();
  });

  it('looks back no further than asked, and keeps no more than it needs', () => {
    let memory = noGrowth();
    for (let ms = 0; ms <= 600_000; ms += 500)
      memory = look(memory, [tenant('foreign', 'a', ms / 100_000)], ms);
    expect(mostGrown(memory, 600_000, 10_000)).toEqual({ name: 'a', bytes: 0.1 * GB });
    expect(memory.looks.length).toBeLessThanOrEqual(122);
  });
});
