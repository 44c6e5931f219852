import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import {
  gateIn,
  LANDLORD,
  LANE_8080,
  NODE,
  type Other,
  RACER,
  startOther,
  tempFolder,
  URL_8080,
} from '../support/gate.ts';

const KILLS = 500;

const PYTHON = `
import fcntl, os, sys
fd = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT, 0o600)
fcntl.flock(fd, fcntl.LOCK_EX)
print("held", flush=True)
sys.stdin.read()
`;

/** A holder of each kind in turn; those that wait for the lane are killed while they wait, too. */
function startVictim(index: number, root: string): Other {
  const env = { VRAM_LANDLORD_GATE_DIR: root };
  const lock = join(root, `${LANE_8080}.lock`);
  const kinds: readonly (readonly string[])[] = [
    [...NODE, RACER, 'hold', URL_8080, `victim-${index}`],
    ['python3', '-c', PYTHON, lock],
    [
      LANDLORD,
      'turn',
      '--backend',
      URL_8080,
      '--session',
      `victim-${index}`,
      '--',
      'sh',
      '-c',
      'echo held; read _',
    ],
    ['python3', '-c', PYTHON, lock],
    [...NODE, RACER, 'wait', URL_8080, `victim-${index}`, 'interactive', '60000', '-'],
  ];
  return startOther(kinds[index % kinds.length] ?? [], { env });
}

describe('a holder that is killed outright', () => {
  it(`frees its lane for the next at once, ${KILLS} times, with no clean-up by anybody (rule 16)`, async () => {
    using folder = tempFolder('killed');
    const { gate, reports, onReport } = gateIn(folder.path);
    gate.tryTurn(URL_8080, { onReport })[Symbol.dispose]();
    let killedHolding = 0;
    for (let index = 0; index < KILLS; index += 1) {
      const victim = startVictim(index, folder.path);
      // Four in five hold it when they are killed; the others are caught somewhere on their way.
      const holds = index % 5 !== 3 && (await victim.line()) !== '';
      const pauseMs = holds ? Math.random() * 3 : Math.random() * 120;
      await new Promise((resolve) => setTimeout(resolve, pauseMs));
      await victim.kill('SIGKILL');
      if (holds) killedHolding += 1;
      using turn = gate.tryTurn(URL_8080, { session: 'next', onReport });
      expect(turn.kind, `after kill ${index}`).toBe('held');
    }
    expect(killedHolding).toBe(KILLS * 0.8);
    expect(reports).toEqual([]);
  }, 900_000);
});
