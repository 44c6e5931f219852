import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { evidenceFiles } from '../../support/evidence.ts';
import { REPORTS } from './reach.ts';

const ROOT = fileURLToPath(new URL('../../../', import.meta.url));

describe('each collected field report', () => {
  it.each(Object.entries(REPORTS))(
    '%s: shown by a test that is there, or said to be out of reach',
    (_, reach) => {
      if ('beyond' in reach) expect(reach.beyond).toMatch(/^[A-Z].{30,}\.$/);
      else expect(readFileSync(`${ROOT}${reach.file}`, 'utf8')).toContain(reach.test);
    },
  );

  // Others may lie beside the repository that were not there when this was written: those are for a person to place.
  const known = evidenceFiles('bug-reports').filter((file) => file.replace(/\.txt$/, '') in REPORTS);
  if (known.length > 0) {
    it('is told by its own name', () => {
      expect(known.map((file) => file.replace(/\.txt$/, '')).sort()).toEqual(Object.keys(REPORTS).sort());
    });
  }
});
