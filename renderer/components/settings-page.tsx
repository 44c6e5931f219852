import { useEffect, useState } from 'react';
import type { SettingsView } from '../../shared/questions.ts';
import { strings } from '../strings.ts';
import { useModel } from './context.ts';
import { FoundNearby } from './found-nearby.tsx';
import { SettingRow } from './setting-row.tsx';
import { useAnswer } from './use-answer.ts';

const words = strings.settings;

export function SettingsPage() {
  const { ask } = useModel();
  const { value, error, again } = useAnswer('settings', {});
  /** What the last change left; newer than what was read at first. */
  const [changed, setChanged] = useState<SettingsView | null>(null);
  useEffect(() => {
    if (value !== null) setChanged(value);
  }, [value]);
  const view = changed ?? value;
  const save = async (key: string, yaml: string | null): Promise<string | null> => {
    const result = await ask('changeSetting', { key, yaml, fingerprint: view?.fingerprint ?? null });
    if (result.ok) {
      setChanged(result.value);
      return null;
    }
    // Somebody edited the file: what stands there now is what the next try starts from.
    if (result.error.code === 'state_mismatch') again();
    return result.error.message;
  };
  if (view === null) return <p className="card empty">{error === null ? words.waiting : error.message}</p>;
  return (
    <>
      <section className="card" aria-labelledby="settings-title">
        <div className="title">
          <h2 id="settings-title">{words.title}</h2>
          <a href="#start">{words.guide}</a>
        </div>
        <p className="facts">{words.file(view.file)}</p>
        {view.rejection !== null && (
          <p className="notice error" role="alert">
            {words.rejected} {view.rejection}
          </p>
        )}
        <ul className="rows settings">
          {view.entries.map((entry) => (
            <SettingRow key={entry.key} entry={entry} save={save} />
          ))}
        </ul>
      </section>
      <FoundNearby
        backends={view.entries.find((entry) => entry.key === 'backends')?.yaml ?? null}
        save={save}
        changed={again}
      />
    </>
  );
}
