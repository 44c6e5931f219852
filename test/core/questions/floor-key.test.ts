import { describe, expect, it } from 'vitest';
import { floorKeyOf } from '../../../electron/core/questions/floor-key.ts';
import { parseSettings } from '../../../electron/core/settings/parse-settings.ts';
import { isMappingAt, withYamlAt } from '../../../electron/core/settings/yaml-patch.ts';
import type { Settings } from '../../../shared/settings.ts';

const DEVICES = [
  { id: 'pci:a', kind: 'amdgpu', name: 'Card A' },
  { id: 'pci:b', kind: 'amdgpu', name: 'Card B' },
  { id: 'nv:c', kind: 'nvidia', name: 'Card C' },
] as const;

function settingsOf(yaml: string): Pick<Settings, 'devices'> {
  const parsed = parseSettings(yaml, 'config.yaml');
  if (!parsed.ok) throw new Error(parsed.error.message);
  return parsed.value;
}

const keyOf = (yaml: string, index: 0 | 1 | 2) =>
  floorKeyOf(settingsOf(yaml), DEVICES[index], DEVICES, (key) => isMappingAt(yaml, key));

describe('whose floor a click sets', () => {
  it('the one for all, where the device has none of its own, and says whom it reaches', () => {
    expect(keyOf('', 0)).toEqual({ floorKey: 'floor', alsoFor: ['Card B', 'Card C'] });
    expect(keyOf('floor: { keep: 4GB, hard: 2GB }', 0).floorKey).toBe('floor.keep');
  });

  it('the one of its own, which would stand before the one for all', () => {
    const yaml = `floor: 4GB
devices:
  - { kind: nvidia, floor: 1GB }
  - { kind: amdgpu }
  - kind: amdgpu # the display
    floor: { keep: 3GB, mode: share }
`;
    expect(keyOf(yaml, 0)).toEqual({ floorKey: 'floor', alsoFor: [] });
    expect(keyOf(yaml, 1)).toEqual({ floorKey: 'devices.2.floor.keep', alsoFor: [] });
    expect(keyOf(yaml, 2)).toEqual({ floorKey: 'devices.0.floor', alsoFor: [] });
    const written = withYamlAt(yaml, 'devices.2.floor.keep', '6GB');
    expect(written.ok && written.value).toContain('floor: { keep: 6GB, mode: share }');
    expect(written.ok && written.value).toContain('# the display');
    expect(withYamlAt(yaml, 'devices.0.floor', '2GB')).toMatchObject({
      ok: true,
      value: expect.stringContaining('{ kind: nvidia, floor: 2GB }'),
    });
  });
});
