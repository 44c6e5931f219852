import { memo, useState } from 'react';
import { strings } from '../strings.ts';
import type { ModelsCard as Card, FoundBackend, ModelRow as Row } from '../view/models.ts';
import { AddModel } from './add-model.tsx';
import { useAsked, useModel } from './context.ts';
import { ModelRow } from './model-row.tsx';
import { Refusal } from './refusal.tsx';

const words = strings.models;

/** So many of the models that are loaded, and of those that are not, are shown without asking. */
const SHOWN_ACTIVE = 24;
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
      <ul className="rows" hidden={card.active.length === 0}>
        {card.active.slice(0, SHOWN_ACTIVE).map((row) => (
          <ModelRow key={row.id} row={row} />
        ))}
      </ul>
      <More rows={card.active.slice(SHOWN_ACTIVE)} summary={words.alsoLoaded} />
      <ul className="rows follows" hidden={shown.length === 0}>
        {shown.map((row) => (
          <ModelRow key={row.id} row={row} />
        ))}
      </ul>
      <More rows={hidden} summary={words.notLoaded} />
    </section>
  );
});

/** What is not looked at is not made: two hundred rows would all follow each reading. */
function More({ rows, summary }: { rows: readonly Row[]; summary: (count: number) => string }) {
  const [open, setOpen] = useState(false);
  if (rows.length === 0) return null;
  return (
    <details onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>{summary(rows.length)}</summary>
      {open && (
        <ul className="rows">
          {rows.map((row) => (
            <ModelRow key={row.id} row={row} />
          ))}
        </ul>
      )}
    </details>
  );
}

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
      <AddModel />
    </div>
  );
}
