/** Sets one key of the config from elsewhere than the settings page. */
import type { Result } from '../shared/errors.ts';
import type { Ask } from '../shared/ipc-schema.ts';
import type { SettingsView } from '../shared/questions.ts';

/** Written over whatever stands for that key now; an edit in between is refused as always. */
export async function setSetting(ask: Ask, key: string, yaml: string): Promise<Result<SettingsView>> {
  const settings = await ask('settings', {});
  if (!settings.ok) return settings;
  const { fingerprint } = settings.value;
  return ask('changeSetting', { key, yaml, fingerprint });
}

/** The amount alone of the floor that rules a device: a mode or a hard floor that a person set beside it stays. */
export function setFloor(ask: Ask, floorKey: string, bytes: number): Promise<Result<SettingsView>> {
  return setSetting(ask, floorKey, sizeYaml(bytes));
}

/** `2.1GB`, rounded up to the next tenth, so that no less is kept than was meant. */
export function sizeYaml(bytes: number): string {
  return bytes < 1e9 ? `${Math.ceil(bytes / 1e7) * 10}MB` : `${Math.ceil(bytes / 1e8) / 10}GB`;
}
