import { homedir, userInfo } from 'node:os';
import { afterEach, describe, expect, it } from 'vitest';
import { chooseRoot, networkFileSystem, passwdHome } from '../../../electron/core/gate/gate-root.ts';

const INPUTS = {
  override: undefined,
  cwd: '/work',
  machineWide: '/var/lib/vram-landlord/gates',
  isThere: () => false,
  passwdHome: () => '/home/ada',
};

describe('the root of the lanes', () => {
  it('lies in the passwd home', () => {
    expect(chooseRoot(INPUTS)).toEqual({
      path: '/home/ada/.local/state/vram-landlord/gates',
      from: 'passwd',
    });
  });

  it('is the machine-wide one where that is there', () => {
    const isThere = (path: string): boolean => path === INPUTS.machineWide;
    expect(chooseRoot({ ...INPUTS, isThere })).toEqual({ path: INPUTS.machineWide, from: 'machine-wide' });
  });

  it('is what the variable says before both, and the same from any folder once absolute', () => {
    const isThere = (): boolean => true;
    expect(chooseRoot({ ...INPUTS, isThere, override: '/mnt/gates' })).toEqual({
      path: '/mnt/gates',
      from: 'override',
    });
    expect(chooseRoot({ ...INPUTS, override: 'gates' })?.path).toBe('/work/gates');
    expect(chooseRoot({ ...INPUTS, override: '' })?.from).toBe('passwd');
  });

  it('is unknown where the user has no home', () => {
    expect(chooseRoot({ ...INPUTS, passwdHome: () => null })).toBeNull();
    expect(chooseRoot({ ...INPUTS, passwdHome: () => 'relative' })).toBeNull();
  });
});

describe('the passwd home', () => {
  const home = process.env.HOME;
  afterEach(() => {
    process.env.HOME = home;
  });

  it('does not follow HOME', () => {
    const before = passwdHome();
    process.env.HOME = '/tmp/a-profile';
    expect(homedir()).toBe('/tmp/a-profile');
    expect(passwdHome()).toBe(before);
    expect(userInfo().homedir).toBe(before);
  });
});

it('a local folder is on no network file system', () => {
  expect(networkFileSystem('/proc')).toBeNull();
  expect(networkFileSystem('/no/such/folder')).toBeNull();
});
