import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { walkFallbacks } from '../../electron/core/gate/walk-fallbacks.ts';
import { gateIn, LANE_8080, nodeHolder, tempFolder, URL_8080 } from '../support/gate.ts';

const CHAIN = [
  { name: 'local', url: URL_8080 },
  { name: 'cloud', url: 'https://api.example.com/v1' },
];

describe('the return trip', () => {
  it('a scheduled turn is local at 00:05, deflected at 00:11, local again at 00:17 (rule 18)', async () => {
    using folder = tempFolder('return');
    const clock = { nowMs: 0 };
    const { gate } = gateIn(folder.path, { epochMs: () => clock.nowMs });
    const deflected: string[] = [];
    const sidecar = join(folder.path, `${LANE_8080}.json`);
    const sidecars: unknown[] = [];

    const scheduledTurn = async (time: string): Promise<string> => {
      clock.nowMs = Date.parse(`2026-05-06T${time}:00Z`);
      const walk = await walkFallbacks(gate, CHAIN, {
        session: 'cron',
        class: 'batch',
        onDeflected: ({ entry, busy }) =>
          deflected.push(`${time} ${entry.name} ${busy.code} ${busy.holder?.session}`),
      });
      if (walk.kind !== 'granted') throw new Error(walk.kind);
      using turn = walk.turn;
      if (turn.kind === 'held') sidecars.push(JSON.parse(readFileSync(sidecar, 'utf8')));
      return walk.entry.name;
    };

    expect(await scheduledTurn('00:05')).toBe('local');
    expect(sidecars).toMatchObject([{ session: 'cron', acquiredAt: '2026-05-06T00:05:00.000Z' }]);
    {
      await using _showdown = await nodeHolder(folder.path, 'showdown');
      expect(await scheduledTurn('00:11')).toBe('cloud');
    }
    expect(await scheduledTurn('00:17')).toBe('local');
    expect(deflected).toEqual(['00:11 local local_backend_busy showdown']);
  });
});
