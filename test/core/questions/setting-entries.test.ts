import { describe, expect, it } from 'vitest';
import { settingEntries } from '../../../electron/core/questions/setting-entries.ts';
import { jsonSchemaText } from '../../../electron/core/settings/json-schema.ts';
import { configSchema } from '../../../electron/core/settings/schema.ts';

const entries = settingEntries(jsonSchemaText(), (key) => (key === 'cap' ? '80%' : null));
const entry = (key: string) => entries.find((one) => one.key === key);

describe('settings as the page shows them', () => {
  it('has every key of the config, each with a meaning', () => {
    expect(entries.map((one) => one.key)).toEqual(Object.keys(configSchema.shape));
    expect(entries.filter((one) => one.meaning === '')).toEqual([]);
  });

  it('says of each key inside what it means, and of each value its default and its unit', () => {
    const silent = entries.flatMap(({ key, parts }) =>
      parts.filter(({ meaning }) => meaning === '').map((part) => `${key}.${part.key}`),
    );
    expect(silent).toEqual([]);
    // What is a list or a mapping holds nothing until something is written into it.
    const plain = entries.filter(({ kind }) => kind !== 'list' && kind !== 'mapping');
    expect(plain.length).toBeGreaterThan(5);
    const noDefault = plain.filter(
      ({ defaultText, meaning }) => defaultText === null && !/\bDefault:|\bNot set:/.test(meaning),
    );
    expect(noDefault.map(({ key }) => key)).toEqual([]);
    const noUnit = entries.filter(
      ({ kind, unit }) => (kind === 'size' || kind === 'duration') && unit === null,
    );
    expect(noUnit.map(({ key }) => key)).toEqual([]);
  });

  it('knows what each is, its default, its unit and what stands in the file', () => {
    expect(Object.fromEntries(entries.map((one) => [one.key, one.kind]))).toMatchObject({
      floor: 'size',
      cap: 'size',
      idle: 'duration',
      raceGrace: 'duration',
      guards: 'choice',
      maxBig: 'number',
      race: 'choice',
      big: 'list',
      small: 'list',
      batchOnly: 'list',
      ttl: 'mapping',
      pinned: 'list',
      devices: 'list',
      backends: 'list',
      footprints: 'mapping',
      fallbacks: 'list',
      agents: 'mapping',
      server: 'mapping',
    });
    expect(entry('cap')).toMatchObject({
      defaultText: '90%',
      unit: 'GB, MiB or % of the device',
      yaml: '80%',
    });
    expect(entry('idle')).toMatchObject({ defaultText: '180s', unit: 's, min, h or d', yaml: null });
    expect(entry('footprints')?.unit).toBe('GB or MiB');
    expect(entry('race')).toMatchObject({ choices: ['class', 'resident', 'newcomer'], unit: null });
    expect(entry('big')?.defaultText).toBe('{ atLeast: 2GB }');
    const server = entry('server')?.parts.map((part) => [part.key, part.defaultText]);
    expect(server).toEqual(
      expect.arrayContaining([
        ['port', '7781'],
        ['apiKeyEnv', null],
      ]),
    );
    expect(entry('backends')?.parts.find((part) => part.key === 'kind')?.choices).toContain('llama.cpp');
    const agents = entry('agents')?.parts.map((part) => part.key);
    expect(agents).toEqual(expect.arrayContaining(['class', 'onBusy']));
  });
});
