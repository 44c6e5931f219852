import { memo } from 'react';
import { strings } from '../strings.ts';
import type { ModelsCard as Card, FoundBackend } from '../view/models.ts';
import { useAsked, useModel } from './context.ts';
import { ModelRow } from './model-row.tsx';
import { Refusal } from './refusal.tsx';

const words = strings.models;

/** So many of the models that are not loaded are shown without asking. */
const SHOWN_INACTIVE = 4;

export const ModelsCard = memo(function ModelsCard({ card }: { card: Card }) {
  const shown = card.inactive.slice(0, SHOWN_INACTIVE);
  const hidden = card.inactive.slice(SHOWN_INACTIVE);
  return (
    <section className="card" aria-labelledby="models-title">
      <h2 id="models-title">{words.title}</h2>
      {card.found.map((backend) => (
        <Found key={backend.name} backend={backend} />
      ))}
      {card.down.map((text) => (
        <p className="notice warning" key={text}>
          {text}
        </p>
      ))}
      {card.empty === 'no-backend' && <NoBackend />}
      {card.empty === 'no-models' && <p className="empty">{strings.backends.noModels}</p>}
      <ul className="rows">
        {card.active.map((row) => (
          <ModelRow key={row.id} row={row} />
        ))}
        {shown.map((row) => (
          <ModelRow key={row.id} row={row} />
        ))}
      </ul>
      {hidden.length > 0 && (
        <details>
          <summary>{words.notLoaded(hidden.length)}</summary>
          <ul className="rows">
            {hidden.map((row) => (
              <ModelRow key={row.id} row={row} />
            ))}
          </ul>
        </details>
      )}
    </section>
  );
});

const Found = memo(function Found({ backend }: { backend: FoundBackend }) {
  const { actions } = useModel();
  const key = `backend ${backend.name}`;
  const pending = useAsked(key)?.kind === 'pending';
  return (
    <div className="notice info offer">
      <p>{backend.text}</p>
      <button
        type="button"
        aria-label={strings.backends.turnOnName(backend.name)}
        aria-busy={pending}
        onClick={() => actions.guardBackend(backend.name)}
      >
        {strings.backends.turnOn}
      </button>
      <Refusal about={key} />
    </div>
  );
});

function NoBackend() {
  const words = strings.backends;
  return (
    <div className="empty">
      <p>
        <strong>{words.noneTitle}</strong>
      </p>
      <p>{words.noneText}</p>
      <pre>{words.noneCommand}</pre>
      <p>{words.noneConfig}</p>
      <pre>{words.noneSnippet}</pre>
    </div>
  );
}
