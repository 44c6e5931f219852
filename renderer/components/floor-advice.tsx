import { memo } from 'react';
import type { FloorAdvice } from '../../shared/questions.ts';
import { setFloor } from '../change-setting.ts';
import { strings } from '../strings.ts';
import { bytesText, roundedUp } from '../view/figures.ts';
import { useModel } from './context.ts';
import { useJob } from './use-job.ts';

const words = strings.history;
/** Closer than this to what is set, taking it would change nothing that matters. */
const SAME_BYTES = 100e6;

export const FloorAdviceCard = memo(function FloorAdviceCard({ advice }: { advice: FloorAdvice | null }) {
  const { ask } = useModel();
  const [job, run] = useJob();
  if (advice === null) return null;
  const { presentBytes, suggestedBytes } = advice;
  const hours = advice.recordedHours.toLocaleString();
  const wanted = suggestedBytes === null ? null : roundedUp(suggestedBytes);
  const same = wanted !== null && presentBytes !== null && Math.abs(wanted - presentBytes) < SAME_BYTES;
  return (
    <section className="card" aria-labelledby="floor-title">
      <h2 id="floor-title">{words.floorTitle}</h2>
      {wanted === null || suggestedBytes === null ? (
        <p>{words.floorTooLittle(hours)}</p>
      ) : (
        <>
          <p>{words.floorAdvice(bytesText(suggestedBytes), hours)}</p>
          <p className="facts">
            {same ? words.floorSame(bytesText(presentBytes)) : words.floorNow(bytesText(presentBytes))}
          </p>
          {!same && advice.alsoFor.length > 0 && (
            <p className="facts">{words.floorAlso(advice.alsoFor.join(', '))}</p>
          )}
          {!same && job.kind !== 'done' && (
            <div className="buttons">
              <button
                type="button"
                aria-busy={job.kind === 'running'}
                onClick={() => run(() => setFloor(ask, advice.floorKey, wanted))}
              >
                {words.floorTake(bytesText(wanted))}
              </button>
            </div>
          )}
          {job.kind === 'done' && <p role="status">{words.floorTaken(bytesText(wanted))}</p>}
          {job.kind === 'failed' && (
            <p className="refusal" role="alert">
              {job.message}
            </p>
          )}
        </>
      )}
    </section>
  );
});
