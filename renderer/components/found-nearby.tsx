import { memo, useState } from 'react';
import type { BackendState } from '../../shared/state.ts';
import { strings } from '../strings.ts';
import { hostOf } from '../view/figures.ts';
import { withBackend } from '../view/settings.ts';
import { shown } from '../view/shown.ts';
import { AddModel } from './add-model.tsx';
import { useReplica } from './context.ts';
import type { SaveSetting } from './setting-row.tsx';

const words = strings.settings;

/** Servers that were found by themselves, offered for the settings: named there, they are guarded. */
export const FoundNearby = memo(function FoundNearby({
  backends,
  save,
  changed,
}: {
  backends: string | null;
  save: SaveSetting;
  /** The config is another since. */
  changed: () => void;
}) {
  const found = useReplica(({ state }) =>
    (state?.backends ?? []).filter((backend) => backend.found && backend.status === 'up'),
  );
  const [said, setSaid] = useState<{ readonly ok: boolean; readonly text: string } | null>(null);
  const add = (backend: BackendState): void => {
    void save('backends', withBackend(backends, backend)).then((why) =>
      setSaid(why === null ? { ok: true, text: words.added(shown(backend.name)) } : { ok: false, text: why }),
    );
  };
  return (
    <section className="card" aria-labelledby="found-title">
      <h2 id="found-title">{words.found}</h2>
      {found.length === 0 && <p className="empty">{words.foundNone}</p>}
      <ul className="rows">
        {found.map((backend) => (
          <li key={backend.name} className="offer">
            <p>{words.foundOne(shown(backend.name), backend.kind, hostOf(backend.url))}</p>
            <button
              type="button"
              aria-label={words.addBackendName(backend.name)}
              onClick={() => add(backend)}
            >
              {words.addBackend}
            </button>
          </li>
        ))}
      </ul>
      <AddModel added={changed} />
      {said !== null && (
        <p className={said.ok ? 'saved' : 'refusal'} role={said.ok ? 'status' : 'alert'}>
          {said.text}
        </p>
      )}
    </section>
  );
});
