import { memo, useEffect, useRef, useState } from 'react';
import { strings } from '../strings.ts';
import type { EventsCard as Card, EventRow as Row } from '../view/events.ts';
import { shortPaths, timeText } from '../view/figures.ts';
import { placeOf, rowAt } from '../view/place.ts';
import { useAsked, useModel, useTimed } from './context.ts';
import { Refusal } from './refusal.tsx';
import { useHash } from './use-place.ts';

const words = strings.events;
const FIRST_SHOWN = 12;
const MORE = 40;

export const EventsCard = memo(function EventsCard({ card }: { card: Card }) {
  const [more, setMore] = useState(FIRST_SHOWN);
  const place = placeOf(useHash());
  const pointed = place?.kind === 'event' ? rowAt(card.rows, place.id) : -1;
  const shown = Math.max(more, pointed + 1);
  const section = useRef<HTMLElement>(null);
  const toLog = place?.kind === 'log';
  useEffect(() => {
    if (toLog) section.current?.scrollIntoView({ block: 'start' });
  }, [toLog]);
  return (
    <section className="card events" aria-labelledby="events-title" ref={section}>
      <div className="title">
        <h2 id="events-title">{words.title}</h2>
        <span className="buttons">
          {card.restorable.length > 0 && <Restore models={card.restorable} />}
          <a href="#events">{strings.eventsPage.all}</a>
        </span>
      </div>
      <Refusal about="restore" />
      {card.rows.length === 0 && <p className="empty">{words.empty}</p>}
      <ol className="rows">
        {card.rows.slice(0, shown).map((row, index) => (
          <EventRow key={row.id} row={row} pointed={index === pointed} />
        ))}
      </ol>
      {card.rows.length > shown && (
        <button type="button" className="more" onClick={() => setMore(shown + MORE)}>
          {words.more}
        </button>
      )}
    </section>
  );
});

const EventRow = memo(function EventRow({ row, pointed }: { row: Row; pointed: boolean }) {
  const { actions } = useModel();
  const time = useTimed((nowMs) => timeText(row.at, nowMs));
  const { loadAgain } = row;
  const short = shortPaths(row.reason);
  const item = useRef<HTMLLIElement>(null);
  useEffect(() => {
    if (!pointed) return;
    item.current?.scrollIntoView({ block: 'center' });
    item.current?.focus({ preventScroll: true });
  }, [pointed]);
  return (
    <li
      className={`event sev-${row.severity}${pointed ? ' pointed' : ''}`}
      data-event={row.id}
      ref={item}
      tabIndex={pointed ? -1 : undefined}
      aria-current={pointed ? 'true' : undefined}
    >
      <time dateTime={row.at}>{time}</time>
      <p title={short === row.reason ? undefined : row.reason}>
        <span className="kind">{row.kind}</span> {short}
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
  const name = words.restoreName(words.restore(models.length), models.join(', '));
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
