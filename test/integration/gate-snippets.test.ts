import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { inspectLane } from '../../electron/core/gate/inspect.ts';
import { laneFiles } from '../../electron/core/gate/lane-files.ts';
import {
  gateIn,
  LANDLORD,
  LANE_8080,
  NODE,
  nodeHolder,
  privately,
  runToEnd,
  startOther,
  tempFolder,
  URL_8080,
  withPasswd,
} from '../support/gate.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const README = readFileSync(new URL('../../README.md', import.meta.url), 'utf8');
const text = /^## One turn at a time\n(.*?)^## /ms.exec(README)?.[1] ?? '';
const blocks = [...text.matchAll(/^```(\w+)\n(.*?)^```$/gms)].map((found) => ({
  language: found[1] ?? '',
  code: found[2] ?? '',
}));
const block = (language: string): string => blocks.find((entry) => entry.language === language)?.code ?? '';

interface Kind {
  readonly name: string;
  readonly file: string;
  readonly code: string;
  readonly command: readonly string[];
  /** What it prints before the command's own output. */
  readonly head: readonly string[];
  /** Exit code and output of a turn that is deflected. */
  readonly deflected: { readonly status: number; readonly shows: RegExp };
}

const KINDS: readonly Kind[] = [
  {
    name: 'Python',
    file: 'agent.py',
    code: block('python'),
    command: ['python3'],
    head: [],
    deflected: { status: 1, shows: /^local_backend_busy\n$/ },
  },
  {
    name: 'shell',
    file: 'agent.sh',
    code: blocks[2]?.code ?? '',
    command: ['sh'],
    head: [],
    deflected: { status: 75, shows: /^local_backend_busy\n$/ },
  },
  {
    name: 'TypeScript',
    file: 'agent.ts',
    code: block('ts'),
    command: NODE,
    head: ['local held'],
    deflected: { status: 0, shows: /^cloud skipped\n$/ },
  },
];

/** The block as it stands, in a folder that has us installed as a dependency. */
function write(folder: string, kind: Kind): readonly string[] {
  const file = join(folder, kind.file);
  writeFileSync(file, kind.code);
  writeFileSync(join(folder, 'package.json'), '{"type":"module"}');
  mkdirSync(join(folder, 'node_modules'), { recursive: true });
  const link = join(folder, 'node_modules', 'vram-landlord');
  if (!existsSync(link)) symlinkSync(ROOT, link);
  return [...kind.command, file];
}

it('the README shows one way for each language, and one line that does it all', () => {
  expect(blocks.map((entry) => entry.language)).toEqual(['sh', 'python', 'sh', 'ts']);
});

describe.each(KINDS)('the $name agent of the README', (kind) => {
  it('holds the lane for its turn, and no longer', async () => {
    using folder = tempFolder('snippet');
    const root = join(folder.path, 'gates');
    const env = { VRAM_LANDLORD_GATE_DIR: root };
    const command = write(folder.path, kind);
    const { gate } = gateIn(root);
    await using agent = startOther([...command, 'sh', '-c', 'echo mine; read _; exit 5'], { env });
    for (const line of [...kind.head, 'mine']) expect(await agent.line()).toBe(line);
    expect(gate.tryTurn(URL_8080, { session: 'other' }).kind).toBe('busy');
    expect(statSync(join(root, `${LANE_8080}.lock`)).mode & 0o777).toBe(0o600);
    await agent.end();
    expect(agent.child.exitCode).toBe(5);
    using next = gate.tryTurn(URL_8080);
    expect(next.kind).toBe('held');
  });

  it('is deflected while another has it', async () => {
    using folder = tempFolder('snippet');
    await using _holder = await nodeHolder(folder.path, 'other');
    const result = runToEnd([...write(folder.path, kind), 'true'], { VRAM_LANDLORD_GATE_DIR: folder.path });
    expect(result.status).toBe(kind.deflected.status);
    expect(result.stdout + result.stderr).toMatch(kind.deflected.shows);
  });

  it('frees it when it is killed outright', async () => {
    using folder = tempFolder('snippet');
    const env = { VRAM_LANDLORD_GATE_DIR: folder.path };
    const agent = startOther([...write(folder.path, kind), 'sh', '-c', 'echo mine; read _'], { env });
    for (const line of [...kind.head, 'mine']) expect(await agent.line()).toBe(line);
    await agent.kill();
    // A shell hands its lock on to its command, which ends with its input.
    const { gate } = gateIn(folder.path);
    agent.child.stdin?.destroy();
    for (;;) {
      using turn = gate.tryTurn(URL_8080, { session: 'next' });
      if (turn.kind === 'held') break;
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
    expect(inspectLane(laneFiles(folder.path, LANE_8080)).held).toBe(false);
  });

  it('goes on without a lane where there can be none', () => {
    using folder = tempFolder('snippet');
    writeFileSync(join(folder.path, 'gates'), 'a file');
    const result = runToEnd([...write(folder.path, kind), 'sh', '-c', 'exit 6'], {
      VRAM_LANDLORD_GATE_DIR: join(folder.path, 'gates'),
    });
    expect(result.status).toBe(6);
  });

  it.each(['dangling link', 'link', 'folder', 'pipe'])(
    'goes on without a lane, and locks nothing, where a %s lies in the lock’s place',
    (what) => {
      using folder = tempFolder('snippet');
      const root = join(folder.path, 'gates');
      const path = join(root, `${LANE_8080}.lock`);
      const target = join(folder.path, 'target');
      mkdirSync(root);
      if (what === 'folder') mkdirSync(path);
      else if (what === 'pipe') runToEnd(['mkfifo', path]);
      else symlinkSync(target, path);
      if (what === 'link') writeFileSync(target, '');
      const before = statSync(what === 'dangling link' ? root : path).ino;
      const script = 'flock -n "$1" true && exit 6';
      const probe = what === 'link' ? target : write(folder.path, kind).at(-1);
      const result = runToEnd([...write(folder.path, kind), 'sh', '-c', script, 'sh', probe ?? ''], {
        VRAM_LANDLORD_GATE_DIR: root,
      });
      expect(result.status).toBe(6);
      expect(statSync(what === 'dangling link' ? root : path).ino).toBe(before);
      expect(existsSync(target)).toBe(what === 'link');
    },
  );

  using probe = tempFolder('snippet');
  const canReplacePasswd = withPasswd(probe.path, join(probe.path, 'home')) !== null;
  // Without a variable it would be this user's own root.
  if (canReplacePasswd) {
    it('finds the root in passwd, whatever HOME is', async () => {
      using folder = tempFolder('snippet');
      const home = join(folder.path, 'home');
      const prefix = withPasswd(folder.path, home) ?? [];
      const command = [...prefix, ...write(folder.path, kind), 'sh', '-c', 'echo mine; read _'];
      await using agent = startOther(command, { env: { HOME: '/tmp', XDG_STATE_HOME: '/tmp' } });
      for (const line of [...kind.head, 'mine']) expect(await agent.line()).toBe(line);
      const root = join(home, '.local/state/vram-landlord/gates');
      expect(gateIn(root).gate.tryTurn(URL_8080, { session: 'other' }).kind).toBe('busy');
      await agent.end();
    });

    it('of a user without an entry there goes on without a lane, and makes nothing', () => {
      using folder = tempFolder('snippet');
      const work = join(folder.path, 'work');
      mkdirSync(work);
      const file = join(folder.path, 'nobody');
      writeFileSync(file, 'nobody:x:65533:65533::/nowhere:/bin/false\n');
      const hidden = '{ [ ! -d /var/lib/vram-landlord ] || mount -t tmpfs tmpfs /var/lib/vram-landlord; }';
      const prefix = privately(`mount --bind '${file}' /etc/passwd && ${hidden}`) ?? [];
      const command = [...prefix, ...write(folder.path, kind), 'sh', '-c', 'exit 6'];
      expect(runToEnd(command, { HOME: work }, work).status).toBe(6);
      expect(readdirSync(work)).toEqual([]);
    });
  }
});

it('the one line of the README runs', () => {
  using folder = tempFolder('snippet');
  const bin = join(folder.path, 'bin');
  mkdirSync(bin);
  symlinkSync(LANDLORD, join(bin, 'landlord'));
  writeFileSync(join(folder.path, 'ask-the-model.sh'), '#!/bin/sh\ncat "$VRAM_LANDLORD_GATE_DIR"/*.json\n', {
    mode: 0o755,
  });
  const line = block('sh');
  const env = { VRAM_LANDLORD_GATE_DIR: join(folder.path, 'gates'), PATH: `${bin}:${process.env.PATH}` };
  const { status, stdout } = runToEnd(['sh', '-c', line], env, folder.path);
  expect(status).toBe(0);
  expect(JSON.parse(stdout)).toMatchObject({ session: 'nightly', class: 'batch' });
});
