import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { LANDLORD, NODE, privately, runToEnd, tempFolder, URL_8080 } from '../support/gate.ts';

const TURNS = fileURLToPath(new URL('../support/gate-turns.ts', import.meta.url));
const NO_KOFFI = fileURLToPath(new URL('../support/no-koffi.ts', import.meta.url));

describe('a gate that is out of order', () => {
  it('without koffi: every turn goes through, one report, and a command runs', () => {
    using folder = tempFolder('open');
    const env = { VRAM_LANDLORD_GATE_DIR: folder.path };
    const { stdout } = runToEnd([...NODE, '--import', NO_KOFFI, TURNS, URL_8080], env);
    expect(JSON.parse(stdout)).toEqual({ kinds: ['open', 'open', 'open'], reports: ['no_locker'] });
    const command = [LANDLORD, 'turn', '--backend', URL_8080, '--', 'sh', '-c', 'echo ran; exit 7'];
    const turn = runToEnd(command, { ...env, NODE_OPTIONS: `--import=${NO_KOFFI}` });
    expect(turn).toMatchObject({ status: 7, stdout: 'ran\n' });
    expect(turn.stderr).toContain('koffi could not be loaded');
    // One sentence on one line, without Node's list of who wanted it.
    expect(turn.stderr).not.toMatch(/\\u|require stack/i);
    expect(turn.stderr.trim().split('\n')).toHaveLength(1);
  });

  it('with a root that is a file: the command runs, and one line says why it has no lane', () => {
    const turn = runToEnd(
      [LANDLORD, 'turn', '--backend', URL_8080, '--', 'sh', '-c', 'echo ran $LANDLORD_TURN'],
      {
        VRAM_LANDLORD_GATE_DIR: TURNS,
        LANDLORD_TURN: 'of-before',
      },
    );
    expect(turn).toMatchObject({ status: 0, stdout: 'ran\n' });
    expect(turn.stderr.trim().split('\n')).toHaveLength(1);
  });

  using probe = tempFolder('open');
  const canMount = privately(`mount -t tmpfs -o nr_inodes=1 tmpfs '${probe.path}'`) !== null;
  // A full disk of our own needs a mount of our own.
  if (canMount) {
    const onDisk = (inodes: number): unknown => {
      using folder = tempFolder('open');
      const disk = join(folder.path, 'disk');
      mkdirSync(disk);
      const prefix = privately(`mount -t tmpfs -o nr_inodes=${inodes} tmpfs '${disk}'`);
      if (prefix === null) throw new Error('it could be mounted before');
      return JSON.parse(
        runToEnd([...prefix, ...NODE, TURNS, URL_8080], { VRAM_LANDLORD_GATE_DIR: disk }).stdout,
      );
    };

    it('on a full disk: every turn goes through, one report', () => {
      expect(onDisk(1)).toEqual({ kinds: ['open', 'open', 'open'], reports: ['disk_full'] });
    });

    it('on a disk with room for the lock alone: the lane is held, and one report says there is no sidecar', () => {
      expect(onDisk(2)).toEqual({ kinds: ['held', 'held', 'held'], reports: ['sidecar_not_written'] });
    });
  }
});
