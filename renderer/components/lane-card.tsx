import { memo } from 'react';
import { strings } from '../strings.ts';
import type { LaneCard as Card, LaneRow as Row } from '../view/lanes.ts';
import { Ago } from './ago.tsx';

const words = strings.lanes;

export const LaneCard = memo(function LaneCard({ card }: { card: Card }) {
  const title = `lane-${card.backend}`;
  return (
    <section className="card lane" aria-labelledby={title} data-lane={card.backend}>
      <h2 id={title}>{card.title}</h2>
      {card.trouble !== null && <p className="notice warning">{card.trouble}</p>}
      <ul className="rows">
        {card.rows.map((row) => (
          <LaneRow key={row.key} row={row} />
        ))}
      </ul>
    </section>
  );
});

const LaneRow = memo(function LaneRow({ row }: { row: Row }) {
  return (
    <li className="turn">
      <i className={`lamp ${row.lamp}`} aria-hidden="true" />
      <div className="what">
        <p>
          {row.name !== null && (
            <>
              <strong>{row.name}</strong>{' '}
            </>
          )}
          {row.text}
        </p>
        {row.facts.length > 0 && (
          <p className="facts">
            {row.facts.map((fact) => (
              <span key={fact}>{fact}</span>
            ))}
          </p>
        )}
      </div>
      <span className="age">
        {row.sinceMs === null ? row.age : <Ago atMs={row.sinceMs} write={words.since} />}
      </span>
    </li>
  );
});
