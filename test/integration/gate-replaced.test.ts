import { renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { checkGate } from '../../electron/core/gate/gate-check.ts';
import { gateIn, LANE_8080, nodeHolder, runToEnd, tempFolder, URL_8080 } from '../support/gate.ts';

const WAYS: readonly (readonly [string, (path: string) => void])[] = [
  ['deleted', (path) => rmSync(path)],
  [
    'replaced',
    (path) => {
      writeFileSync(`${path}.new`, '');
      renameSync(`${path}.new`, path);
    },
  ],
  ['moved away', (path) => renameSync(path, `${path}.old`)],
];

describe('a lock file under its holder', () => {
  it.each(WAYS)(
    '%s: two hold it for one turn at most, and the doctor finds it (rule 19)',
    async (_, change) => {
      using folder = tempFolder('replaced');
      const path = join(folder.path, `${LANE_8080}.lock`);
      const { gate } = gateIn(folder.path);
      await using first = await nodeHolder(folder.path, 'first');
      change(path);
      // The newcomer can't see that lock; this is the one turn.
      using second = gate.tryTurn(URL_8080, { session: 'second' });
      expect(second.kind).toBe('held');

      const found = await checkGate({ gateDir: folder.path });
      const ghosts = found.checks.find((check) => check.name === 'replaced locks');
      expect(ghosts?.outcome).toBe('failed');
      expect(ghosts?.detail.join('\n')).toContain(`pid ${first.pid}`);

      // From its next turn on the first one is at the file that lies there.
      await first.end();
      await expect(nodeHolder(folder.path, 'first')).rejects.toThrow('busy');
      expect(runToEnd(['flock', '-n', path, 'true']).status).toBe(1);
      second[Symbol.dispose]();
      const after = await checkGate({ gateDir: folder.path });
      expect(after.checks.find((check) => check.name === 'replaced locks')?.outcome).toBe('ok');
    },
  );

  it('is found by the doctor, too, when its whole root was moved away', async () => {
    using folder = tempFolder('replaced');
    const root = join(folder.path, 'gates');
    await using first = await nodeHolder(root, 'first');
    renameSync(root, `${root}.old`);
    using second = gateIn(root).gate.tryTurn(URL_8080, { session: 'second' });
    expect(second.kind).toBe('held');
    const found = await checkGate({ gateDir: root });
    const elsewhere = found.checks.find((check) => check.name === 'other roots');
    expect(elsewhere?.detail.join('\n')).toContain(`pid ${first.pid}`);
    expect(elsewhere?.detail.join('\n')).toContain(`${root}.old/${LANE_8080}.lock`);
    await first.end();
    await expect(nodeHolder(root, 'first')).rejects.toThrow('busy');
  });
});
