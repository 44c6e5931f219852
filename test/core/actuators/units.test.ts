import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { systemdUnits } from '../../../electron/core/actuators/units.ts';
import { unitOfCgroup } from '../../../electron/core/process/control-group.ts';

describe('the service a process runs in', () => {
  it.each([
    ['0::/system.slice/ollama.service\n', { name: 'ollama.service', scope: 'system' }],
    [
      '0::/user.slice/user-1000.slice/user@1000.service/app.slice/llama.service\n',
      { name: 'llama.service', scope: 'user' },
    ],
    [
      '0::/user.slice/user-1000.slice/user@1000.service/app.slice/llama\\x2dserver@8080.service',
      { name: 'llama\\x2dserver@8080.service', scope: 'user' },
    ],
    [
      '12:memory:/x\n1:name=systemd:/system.slice/llama.service\n0::/\n',
      { name: 'llama.service', scope: 'system' },
    ],
  ])('%j is %j', (text, unit) => {
    expect(unitOfCgroup(text)).toEqual(unit);
  });

  it.each([
    '0::/user.slice/user-1000.slice/user@1000.service/app.slice/app-org.gnome.Terminal.slice/vte-spawn-1.scope',
    '0::/user.slice/user-1000.slice/session-2.scope',
    '0::/user.slice/user-1000.slice/user@1000.service',
    '0::/system.slice/docker-0123.scope',
    '0::/system.slice/docker.service/containers/0123',
    '0::/init.scope',
    '0::/',
    '',
    'nonsense',
  ])('%j is none: a terminal, a container, an app, or nothing at all', (text) => {
    expect(unitOfCgroup(text)).toBeNull();
  });
});

describe('systemd, asked through the systemctl on the path', () => {
  let root = '';
  const path = process.env.PATH;
  const process_ = (pid: number, comm: string, parentPid: number, cgroup: string): void => {
    mkdirSync(join(root, 'proc', String(pid)), { recursive: true });
    writeFileSync(join(root, 'proc', String(pid), 'comm'), `${comm}\n`);
    writeFileSync(join(root, 'proc', String(pid), 'stat'), `${pid} (${comm}) S ${parentPid} 1 1`);
    writeFileSync(join(root, 'proc', String(pid), 'cgroup'), `0::${cgroup}\n`);
  };
  beforeAll(() => {
    root = mkdtempSync(join(tmpdir(), 'landlord-units-'));
    const bin = join(root, 'bin');
    mkdirSync(bin);
    // Writes down what it was asked, and answers as the files beside it say.
    writeFileSync(
      join(bin, 'systemctl'),
      `#!/bin/sh\necho "$*" >> "${root}/asked"\ncase "$*" in\n*show*) cat "${root}/main";;\n*broken*) echo "Failed to restart broken.service: Access denied" >&2; exit 4;;\nesac\n`,
    );
    chmodSync(join(bin, 'systemctl'), 0o755);
    process.env.PATH = `${bin}${delimiter}${path}`;
    process_(1, 'systemd', 0, '/init.scope');
    process_(50, 'node', 1, '/user.slice/user-1000.slice/user@1000.service/app.slice/vram-landlord.service');
    process_(
      51,
      'llama-server',
      50,
      '/user.slice/user-1000.slice/user@1000.service/app.slice/vram-landlord.service',
    );
    process_(60, 'llama-server', 1, '/user.slice/user-1000.slice/user@1000.service/app.slice/llama.service');
    process_(70, 'start.sh', 1, '/system.slice/llama.service');
    process_(71, 'llama-server', 70, '/system.slice/llama.service');
    process_(
      80,
      'gnome-shell',
      1,
      '/user.slice/user-1000.slice/user@1000.service/session.slice/org.gnome.Shell@wayland.service',
    );
    process_(
      81,
      'llama-server',
      80,
      '/user.slice/user-1000.slice/user@1000.service/session.slice/org.gnome.Shell@wayland.service',
    );
    process_(90, 'bash', 1, '/user.slice/user-1000.slice/session-2.scope');
  });
  afterAll(() => {
    process.env.PATH = path;
    rmSync(root, { recursive: true, force: true });
  });
  const main = (pid: number): void => writeFileSync(join(root, 'main'), `${pid}\n`);
  const units = () => systemdUnits(50, join(root, 'proc'));
  const asked = (): string => readFileSync(join(root, 'asked'), 'utf8');

  it('finds the service whose main process the server is, or that started it', async () => {
    main(60);
    expect(await units().of(60)).toEqual({ ok: true, value: { name: 'llama.service', scope: 'user' } });
    expect(asked()).toContain('--user show --property=MainPID --value llama.service');
    main(70);
    expect(await units().of(71)).toEqual({ ok: true, value: { name: 'llama.service', scope: 'system' } });
  });

  it('never a desktop’s own service, our own, a terminal’s scope, or one that is there for something else', async () => {
    main(80);
    expect(await units().of(81)).toMatchObject({
      ok: false,
      error: { message: expect.stringMatching(/not there for/) },
    });
    main(50);
    expect(await units().of(51)).toMatchObject({
      ok: false,
      error: { message: expect.stringMatching(/own service/) },
    });
    expect(await units().of(90)).toMatchObject({ ok: false });
    expect(await units().of(4_000_000)).toMatchObject({ ok: false });
    main(61);
    expect(await units().of(60)).toMatchObject({ ok: false });
    main(0);
    expect(await units().of(60)).toMatchObject({ ok: false });
  });

  it('starts it anew, and says what to try where that is refused', async () => {
    expect(await units().restart({ name: 'llama.service', scope: 'user' })).toEqual({
      ok: true,
      value: undefined,
    });
    expect(asked()).toMatch(/^--user restart llama\.service$/m);
    const refused = await units().restart({ name: 'broken.service', scope: 'system' });
    expect(refused).toMatchObject({
      ok: false,
      error: { message: expect.stringMatching(/Access denied.*`sudo systemctl restart broken\.service`/) },
    });
  });

  it('says so where no process can be started', async () => {
    // So much environment no process may have: `spawn` throws, as it does where there is no memory for one.
    vi.stubEnv('LANDLORD_TEST_LONG', 'x'.repeat(200_000));
    const refused = await units().restart({ name: 'llama.service', scope: 'user' });
    vi.unstubAllEnvs();
    expect(refused).toMatchObject({
      ok: false,
      error: {
        message: expect.stringMatching(/^systemctl can't be run \(.*E2BIG\)\. Try `systemctl --user/),
      },
    });
  });
});
