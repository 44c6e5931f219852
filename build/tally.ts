/**
 * What a run of checks amounts to. A skipped test is one nobody ran: it is counted apart, and as a
 * failure where skipping is forbidden (`LANDLORD_FORBID_SKIP=1`).
 */
export interface Tally {
  readonly passed: number;
  readonly failed: number;
  readonly skipped: number;
}

export const NO_TESTS: Tally = { passed: 0, failed: 0, skipped: 0 };

export function addTallies(a: Tally, b: Tally): Tally {
  return { passed: a.passed + b.passed, failed: a.failed + b.failed, skipped: a.skipped + b.skipped };
}

/** Skipped ones become failures where skipping is forbidden. */
export function judge(tally: Tally, skippingForbidden: boolean): Tally {
  return skippingForbidden ? { ...tally, failed: tally.failed + tally.skipped, skipped: 0 } : tally;
}

/** The one line a machine reads at the end of a run. */
export function tallyLine(tally: Tally): string {
  return `${tally.passed} passed, ${tally.failed} failed`;
}

export function forbidsSkipping(env: Readonly<Record<string, string | undefined>>): boolean {
  return env.LANDLORD_FORBID_SKIP === '1';
}

/** Reads a tally as JSON; null when it is not one, for instance half-written by a run that died. */
export function parseTally(text: string): Tally | null {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return null;
  }
  if (typeof value !== 'object' || value === null) return null;
  const count = (name: string): number | null => {
    const found: unknown = Reflect.get(value, name);
    return typeof found === 'number' && Number.isSafeInteger(found) && found >= 0 ? found : null;
  };
  const passed = count('passed');
  const failed = count('failed');
  const skipped = count('skipped');
  return passed === null || failed === null || skipped === null ? null : { passed, failed, skipped };
}
