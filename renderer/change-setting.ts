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

/** The floor's amount alone: a mode or a hard floor that a person set beside it stays. */
export async function setFloor(ask: Ask, bytes: number): Promise<Result<SettingsView>> {
  const settings = await ask('settings', {});
  if (!settings.ok) return settings;
  const { fingerprint, entries } = settings.value;
  const now = entries.find(({ key }) => key === 'floor')?.yaml ?? null;
  const key = now !== null && /^\{|^(?:keep|hard|mode)\s*:/m.test(now) ? 'floor.keep' : 'floor';
  return ask('changeSetting', { key, yaml: sizeYaml(bytes), fingerprint });
}

/** `2.1GB`, rounded up to the next tenth, so that no less is kept than was meant. */
export function sizeYaml(bytes: number): string {
  return bytes < 1e9 ? `${Math.ceil(bytes / 1e7) * 10}MB` : `${Math.ceil(bytes / 1e8) / 10}GB`;
}
