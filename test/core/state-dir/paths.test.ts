import { describe, expect, it } from 'vitest';
import { resolvePaths } from '../../../electron/core/state-dir/paths.ts';

const BASE = { env: {}, home: '/home/ada', cwd: '/work' };

describe('resolvePaths', () => {
  it('puts files where the XDG base directory specification has them', () => {
    const plain = resolvePaths(BASE);
    expect(plain.configFile).toBe('/home/ada/.config/vram-landlord/config.yaml');
    expect(plain.databaseFile).toBe('/home/ada/.local/state/vram-landlord/landlord.db');
    const moved = resolvePaths({ ...BASE, env: { XDG_CONFIG_HOME: '/c', XDG_STATE_HOME: '/s' } });
    expect(moved.configFile).toBe('/c/vram-landlord/config.yaml');
    expect(moved.schemaFile).toBe('/c/vram-landlord/config.schema.json');
    expect(moved.tokenFile).toBe('/s/vram-landlord/token');
  });

  it('ignores relative and empty XDG variables, as that specification says', () => {
    expect(resolvePaths({ ...BASE, env: { XDG_CONFIG_HOME: 'c', XDG_STATE_HOME: '' } })).toEqual(
      resolvePaths(BASE),
    );
  });

  it('moves every file but the config with --state-dir', () => {
    const moved = resolvePaths({ ...BASE, stateDir: 'run' });
    const { configFile, configDir, schemaFile, ...rest } = moved;
    expect(configFile).toBe(resolvePaths(BASE).configFile);
    expect([configDir, schemaFile].every((path) => path.startsWith('/home/ada/.config/'))).toBe(true);
    for (const path of Object.values(rest)) expect(path).toMatch(/^\/work\/run/);
  });

  it('moves the config and its schema with --config', () => {
    const moved = resolvePaths({ ...BASE, config: '../etc/landlord.yaml' });
    expect(moved.configFile).toBe('/etc/landlord.yaml');
    expect(moved.schemaFile).toBe('/etc/config.schema.json');
    expect(moved.stateDir).toBe(resolvePaths(BASE).stateDir);
  });
});
