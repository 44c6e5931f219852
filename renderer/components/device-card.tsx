import { memo } from 'react';
import { strings } from '../strings.ts';
import type { Budget, BudgetKey, Mark, Segment } from '../view/budget.ts';
import type { DeviceCard as Card } from '../view/device.ts';
import { glueUnits } from '../view/figures.ts';
import { ReadAgo } from './ago.tsx';

export const DeviceCard = memo(function DeviceCard({ card }: { card: Card }) {
  const { sentence, budget } = card;
  return (
    <section className={`card device ${sentence.tone}`} aria-label={card.name}>
      <h2 className="sentence">{glueUnits(sentence.text)}</h2>
      {sentence.detail !== null && <p className="detail">{sentence.detail}</p>}
      <p className="facts">
        {card.facts.map((fact) => (
          <span key={fact}>{fact}</span>
        ))}
        <ReadAgo deviceId={card.id} />
      </p>
      {budget !== null && <BudgetBar budget={budget} name={strings.device.barName(card.name)} />}
      {card.notes.map((note) => (
        <p className="note" key={note}>
          {note}
        </p>
      ))}
    </section>
  );
});

/** The bar is drawn for the eye; the list under it says the same in words. */
const BudgetBar = memo(function BudgetBar({ budget, name }: { budget: Budget; name: string }) {
  return (
    <>
      <div className="budget" aria-hidden="true">
        <MarkLabel mark={budget.floor} kind="floor" />
        <div className="bar">
          {budget.segments.map((segment) => (
            <BarSegment key={segment.key} segment={segment} />
          ))}
        </div>
        <MarkLabel mark={budget.cap} kind="cap" />
        {budget.floor !== null && <i className="mark floor" style={{ left: `${budget.floor.atPercent}%` }} />}
        {budget.cap !== null && <i className="mark cap" style={{ left: `${budget.cap.atPercent}%` }} />}
      </div>
      <ul className="keys" aria-label={name}>
        {budget.keys.map((key) => (
          <KeyEntry key={key.key} entry={key} />
        ))}
        {[budget.floor, budget.cap].map(
          (mark) =>
            mark !== null && (
              <li className="spoken" key={mark.label}>
                {mark.label}
              </li>
            ),
        )}
      </ul>
      {budget.over !== null && <p className="note">{budget.over}</p>}
    </>
  );
});

/** On its own line, above or below the bar: it grows away from the nearer end and meets nothing. */
function MarkLabel({ mark, kind }: { mark: Mark | null; kind: 'floor' | 'cap' }) {
  if (mark === null) return <div className="mark-line" />;
  const side = mark.atPercent > 50 ? { right: `${100 - mark.atPercent}%` } : { left: `${mark.atPercent}%` };
  return (
    <div className={`mark-line ${kind}`}>
      <span style={side}>{mark.label}</span>
    </div>
  );
}

const BarSegment = memo(function BarSegment({ segment }: { segment: Segment }) {
  return (
    <span
      className={`segment tone-${segment.tone}${segment.hatched ? ' hatched' : ''}`}
      data-key={segment.key}
      style={{ width: `${segment.widthPercent}%` }}
      title={`${segment.label} ${segment.bytesText}`}
    >
      <b>
        <span>{segment.label}</span> <em>{segment.bytesText}</em>
      </b>
    </span>
  );
});

const KeyEntry = memo(function KeyEntry({ entry }: { entry: BudgetKey }) {
  return (
    <li>
      <i className={`tone-${entry.tone}${entry.hatched ? ' hatched' : ''}`} aria-hidden="true" />
      <bdi>{entry.name}</bdi> <b>{entry.bytesText}</b>
      {entry.detail !== null && <small> {entry.detail}</small>}
    </li>
  );
});
