import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { meaningText } from '../../../electron/core/gate/means.ts';
import { GatewayLane } from '../../../electron/core/loop/gateway-lane.ts';

const PORT = 7781;
/** No process has had this number and this start. */
const GONE = { pid: 2 ** 22 - 1, startTime: 1 };

let root = '';
let rootReads = 0;
const gate = {
  root: () => {
    rootReads += 1;
    return { path: root, from: 'override' } as const;
  },
};

beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'landlord-gateway-lane-'));
  rootReads = 0;
});
afterEach(() => rmSync(root, { recursive: true, force: true }));

describe('the lane of a gateway that stands for no other', () => {
  const means = (): string => join(root, `127.0.0.1_${PORT}.means`);

  it('is taken away where a runtime that was killed left it behind', () => {
    mkdirSync(root, { recursive: true });
    writeFileSync(means(), meaningText({ lanes: ['127.0.0.1_8080'], models: {}, writer: GONE }));
    const lane = new GatewayLane(
      gate,
      () => undefined,
      () => false,
    );
    lane.listens(PORT);
    lane.follow([], []);
    expect(existsSync(means())).toBe(false);
  });

  it('is not looked for at each step of the loop', () => {
    const lane = new GatewayLane(
      gate,
      () => undefined,
      () => false,
    );
    lane.listens(PORT);
    lane.follow([], []);
    const reads = rootReads;
    for (let step = 0; step < 10; step += 1) lane.follow([], []);
    expect(rootReads).toBe(reads);
    lane.listens(PORT + 1);
    lane.follow([], []);
    expect(rootReads).toBeGreaterThan(reads);
  });
});
