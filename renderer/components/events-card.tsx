import { memo, useState } from 'react';
import { strings } from '../strings.ts';
import type { EventsCard as Card, EventRow as Row } from '../view/events.ts';
import { timeText } from '../view/figures.ts';
import { useAsked, useModel, useTimed } from './context.ts';
import { Refusal } from './refusal.tsx';

const words = strings.events;
const FIRST_SHOWN = 12;
const MORE = 40;

export const EventsCard = memo(function EventsCard({ card }: { card: Card }) {
  const [shown, setShown] = useState(FIRST_SHOWN);
  return (
    <section className="card events" aria-labelledby="events-title">
      <div className="title">
        <h2 id="events-title">{words.title}</h2>
        {card.restorable.length > 0 && <Restore models={card.restorable} />}
      </div>
      <Refusal about="restore" />
      {card.rows.length === 0 && <p className="empty">{words.empty}</p>}
      <ol className="rows">
        {card.rows.slice(0, shown).map((row) => (
          <EventRow key={row.id} row={row} />
        ))}
      </ol>
      {card.rows.length > shown && (
        <button type="button" className="more" onClick={() => setShown(shown + MORE)}>
          {words.more}
        </button>
      )}
    </section>
  );
});

const EventRow = memo(function EventRow({ row }: { row: Row }) {
  const { actions } = useModel();
  const time = useTimed((nowMs) => timeText(row.at, nowMs));
  const { loadAgain } = row;
  return (
    <li className={`event sev-${row.severity}`} data-event={row.id}>
      <time dateTime={row.at}>{time}</time>
      <p>
        <span className="kind">{row.kind}</span> {row.reason}
        {row.times > 1 && <small> ({words.times(row.times)})</small>}
        {loadAgain !== null && (
          <>
            {' '}
            <button
              type="button"
              className="link"
              aria-label={words.loadAgainName(loadAgain.name)}
              onClick={() => actions.load(loadAgain.id, false)}
            >
              {words.loadAgain}
            </button>
          </>
        )}
      </p>
    </li>
  );
});

const Restore = memo(function Restore({ models }: { models: readonly string[] }) {
  const { actions } = useModel();
  const pending = useAsked('restore')?.kind === 'pending';
  const name = words.restoreName(models.join(', '));
  return (
    <button
      type="button"
      className="small"
      aria-label={name}
      title={name}
      aria-busy={pending}
      onClick={() => actions.restore()}
    >
      {words.restore(models.length)}
    </button>
  );
});
