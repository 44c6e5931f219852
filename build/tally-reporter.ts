import { writeFileSync } from 'node:fs';
import type { Reporter, TestModule, TestSuite } from 'vitest/node';
import { forbidsSkipping, judge, type Tally, tallyLine } from './tally.ts';

/**
 * Counts a Vitest run. Writes the tally to `LANDLORD_TALLY_FILE` when set (build/test.ts adds its own
 * checks to it), else prints the line itself. A file or suite that broke outside a test counts as
 * one failure, as does each unhandled error, so that nothing fails without showing in the line.
 */
export class TallyReporter implements Reporter {
  onTestRunEnd(
    modules: ReadonlyArray<TestModule>,
    unhandledErrors: ReadonlyArray<unknown>,
    reason: 'passed' | 'failed' | 'interrupted',
  ): void {
    const { tally, skippedNames, retriedNames } = countModules(modules);
    const broken = unhandledErrors.length;
    let total: Tally = { ...tally, failed: tally.failed + broken };
    if (reason !== 'passed' && total.failed === 0) total = { ...total, failed: 1 };

    if (retriedNames.length > 0) {
      process.stdout.write('\nThese passed at the second try only:\n');
      for (const name of retriedNames) process.stdout.write(`  - ${name}\n`);
    }
    if (forbidsSkipping(process.env) && skippedNames.length > 0) {
      process.stdout.write(`\nSkipping is forbidden here (LANDLORD_FORBID_SKIP=1), and these did not run:\n`);
      for (const name of skippedNames) process.stdout.write(`  - ${name}\n`);
    }
    const judged = judge(total, forbidsSkipping(process.env));
    if (judged.failed > 0) process.exitCode = 1;

    const file = process.env.LANDLORD_TALLY_FILE;
    if (file !== undefined) {
      writeFileSync(file, JSON.stringify(judged));
      return;
    }
    // Last of all: the default reporter prints its own summary in this same turn.
    process.once('exit', () => process.stdout.write(`${tallyLine(judged)}\n`));
  }
}

function countModules(modules: ReadonlyArray<TestModule>): {
  readonly tally: Tally;
  readonly skippedNames: readonly string[];
  /** Passed, after a first try that failed. */
  readonly retriedNames: readonly string[];
} {
  let passed = 0;
  let failed = 0;
  const skippedNames: string[] = [];
  const retriedNames: string[] = [];
  for (const module of modules) {
    let broken = hasOwnErrors(module) ? 1 : 0;
    for (const suite of module.children.allSuites()) if (hasOwnErrors(suite)) broken += 1;
    failed += broken;
    for (const test of module.children.allTests()) {
      const name = `${module.relativeModuleId} > ${test.fullName}`;
      const state = test.result().state;
      if (state === 'passed' && (test.diagnostic()?.retryCount ?? 0) > 0) retriedNames.push(name);
      if (state === 'passed') passed += 1;
      else if (state === 'failed') failed += 1;
      else skippedNames.push(name);
    }
  }
  return { tally: { passed, failed, skipped: skippedNames.length }, skippedNames, retriedNames };
}

function hasOwnErrors(part: TestModule | TestSuite): boolean {
  return part.errors().length > 0;
}
