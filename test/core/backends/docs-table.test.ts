import { readFile, writeFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';
import { findingsOf, tableOf } from './findings.ts';
import { SUBJECTS } from './subjects.ts';

const PAGE = fileURLToPath(new URL('../../../build/docs/backends.md', import.meta.url));
const BETWEEN = /(<!-- made by test\/core\/backends\/docs-table\.test\.ts -->\n)[\s\S]*?(<!-- end -->)/;

it('the docs tell of each backend what a run of it shows', { timeout: 120_000 }, async () => {
  const table = tableOf(await Promise.all(SUBJECTS.map(findingsOf)));
  const page = await readFile(PAGE, 'utf8');
  const made = page.replace(BETWEEN, (_all, begin: string, end: string) => `${begin}\n${table}\n\n${end}`);
  if (process.env.LANDLORD_WRITE_DOCS === '1') await writeFile(PAGE, made);
  else expect(unpadded(page)).toBe(unpadded(made));
  expect(page).toMatch(BETWEEN);
});

/** The formatter pads a table's cells; what they say is compared. */
function unpadded(markdown: string): string {
  return markdown.replaceAll(/ +\|/g, ' |').replaceAll(/\| +/g, '| ').replaceAll(/-{3,}/g, '---');
}
