/** Runs axe-core on a page and says what it finds, in lines a person can act on. */
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import type { AxeResults } from 'axe-core';
import type { Page } from 'playwright-core';

const source = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

/** Through the debugger, which the page's policy does not bind: the policy itself stays in force. */
export async function findings(page: Page): Promise<readonly string[]> {
  await page.evaluate(source);
  const { violations } = await page.evaluate(
    (): Promise<AxeResults> => Reflect.get(globalThis, 'axe').run(document, { resultTypes: ['violations'] }),
  );
  return violations.flatMap(({ id, help, nodes }) =>
    nodes.map((node) => `${id}: ${help}: ${node.html.slice(0, 160)} (${node.failureSummary ?? ''})`),
  );
}
