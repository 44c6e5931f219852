import { memo } from 'react';
import { strings } from '../strings.ts';
import type { LaneCard as Lane, LaneRow as Row } from '../view/lanes.ts';
import { Ago } from './ago.tsx';

const words = strings.lanes;

/** One line for each lane, who has it and who waits, before anything that may be long. */
export const LanesCard = memo(function LanesCard({ lanes }: { lanes: readonly Lane[] }) {
  return (
    <div className="card lanes">
      {lanes.map((lane) => (
        <LaneOf key={lane.backend} lane={lane} />
      ))}
      {lanes.map(
        ({ backend, trouble }) =>
          trouble !== null && (
            <p className="notice warning" key={backend}>
              {trouble}
            </p>
          ),
      )}
    </div>
  );
});

const LaneOf = memo(function LaneOf({ lane }: { lane: Lane }) {
  const title = `lane-${lane.backend}`;
  return (
    <section className="lane" aria-labelledby={title} data-lane={lane.backend}>
      <h2 id={title}>{lane.title}</h2>
      <ul>
        {lane.rows.map((row, index) => (
          <LaneRow key={row.key} row={row} beside={index === 0 ? lane.beside : null} />
        ))}
      </ul>
    </section>
  );
});

const LaneRow = memo(function LaneRow({ row, beside }: { row: Row; beside: string | null }) {
  const facts = row.facts.join(' · ');
  return (
    <li className={row.past ? 'turn past' : 'turn'}>
      <i className={`lamp ${row.lamp}`} aria-hidden="true" />
      <div className="what">
        <p>
          {row.name !== null && (
            <>
              <strong>
                <bdi>{row.name}</bdi>
              </strong>{' '}
            </>
          )}
          {row.text}
        </p>
        {facts !== '' && (
          <p className="facts" title={facts}>
            {facts}
          </p>
        )}
      </div>
      {beside !== null && <span className="waits">{beside}</span>}
      <span className="age">
        {row.sinceMs === null ? row.age : <Ago atMs={row.sinceMs} write={words.since} />}
      </span>
    </li>
  );
});
