import * as Slider from '@radix-ui/react-slider';
import * as Switch from '@radix-ui/react-switch';
import { memo, useEffect, useState } from 'react';
import { formatDuration } from '../../shared/format.ts';
import type { FloorAdvice, Replay } from '../../shared/questions.ts';
import { replayRows, replaySentence } from '../../shared/replay-text.ts';
import { setFloor, setSetting } from '../change-setting.ts';
import { strings } from '../strings.ts';
import { bytesText } from '../view/figures.ts';
import { useModel, useReplica } from './context.ts';
import { useAnswer } from './use-answer.ts';
import { useJob } from './use-job.ts';

const words = strings.replay;
/** As long as readings are kept in full. */
const SPAN_MS = 48 * 3_600_000;
const STEP_BYTES = 250e6;
/** A drag asks once it rests. */
const REST_MS = 300;

export const ReplayPanel = memo(function ReplayPanel({
  deviceId,
  advice,
}: {
  deviceId: string | null;
  /** Whose setting a floor that is taken becomes; null: not known yet, and none can be taken. */
  advice: FloorAdvice | null;
}) {
  const { ask } = useModel();
  const present = useReplica(({ state }) => {
    const device = state?.devices.find(({ id }) => id === deviceId);
    return {
      floorBytes: device?.floorBytes ?? null,
      totalBytes: device?.totalBytes ?? null,
      maxBig: state?.policy.maxBig ?? 'fit',
    };
  });
  const [floorBytes, setFloorBytes] = useState<number | null>(null);
  const [oneBig, setOneBig] = useState<boolean | null>(null);
  const [asked, setAsked] = useState<{ readonly fromMs: number; readonly floorBytes: number | null } | null>(
    null,
  );
  const [job, run, forget] = useJob();
  useEffect(() => {
    const timer = setTimeout(() => setAsked({ fromMs: Date.now() - SPAN_MS, floorBytes }), REST_MS);
    return () => clearTimeout(timer);
  }, [floorBytes]);
  const maxBig = oneBig === null ? null : oneBig ? 1 : 0;
  const { value, error, waiting } = useAnswer(
    'replay',
    asked === null || deviceId === null ? null : { ...asked, deviceId, maxBig },
  );
  const shownFloor = floorBytes ?? present.floorBytes;
  const bigNow = oneBig ?? present.maxBig === 1;
  if (deviceId === null || shownFloor === null) return null;
  return (
    <section className="card replay" aria-labelledby="replay-title">
      <h2 id="replay-title">{words.title}</h2>
      <p>{words.intro}</p>
      <div className="dial">
        <span id="replay-floor">{words.floor}</span>
        <Slider.Root
          className="slider"
          min={STEP_BYTES * 2}
          max={Math.max(
            STEP_BYTES * 4,
            Math.floor((present.totalBytes ?? 16e9) / 2 / STEP_BYTES) * STEP_BYTES,
          )}
          step={STEP_BYTES}
          value={[Math.round(shownFloor / STEP_BYTES) * STEP_BYTES]}
          onValueChange={([bytes]) => {
            setFloorBytes(bytes ?? null);
            forget();
          }}
        >
          <Slider.Track className="slider-track">
            <Slider.Range className="slider-range" />
          </Slider.Track>
          <Slider.Thumb
            className="slider-thumb"
            aria-labelledby="replay-floor"
            aria-valuetext={bytesText(shownFloor)}
          />
        </Slider.Root>
        <output>{bytesText(shownFloor)}</output>
      </div>
      <div className="dial">
        <Switch.Root
          id="replay-big"
          className="switch"
          checked={bigNow}
          onCheckedChange={(on) => {
            setOneBig(on);
            forget();
          }}
        >
          <Switch.Thumb className="switch-thumb" />
        </Switch.Root>
        <label htmlFor="replay-big">{words.oneBig}</label>
      </div>
      {value === null && <p className="facts">{error === null ? words.working : error.message}</p>}
      {value !== null && <Outcome replay={value} waiting={waiting} />}
      {value !== null && floorBytes !== null && advice !== null && advice.alsoFor.length > 0 && (
        <p className="facts">{strings.history.floorAlso(advice.alsoFor.join(', '))}</p>
      )}
      {value !== null && job.kind !== 'done' && (
        <div className="buttons">
          {advice !== null && floorBytes !== null && floorBytes !== present.floorBytes && (
            <button
              type="button"
              aria-busy={job.kind === 'running'}
              onClick={() => run(() => setFloor(ask, advice.floorKey, floorBytes))}
            >
              {words.take(bytesText(floorBytes))}
            </button>
          )}
          {oneBig !== null && oneBig !== (present.maxBig === 1) && (
            <button
              type="button"
              aria-busy={job.kind === 'running'}
              onClick={() => run(() => setSetting(ask, 'maxBig', oneBig ? '1' : 'fit'))}
            >
              {oneBig ? words.takeBig : words.takeFit}
            </button>
          )}
        </div>
      )}
      {job.kind === 'done' && <p role="status">{words.taken}</p>}
      {job.kind === 'failed' && (
        <p className="refusal" role="alert">
          {job.message}
        </p>
      )}
    </section>
  );
});

const Outcome = memo(function Outcome({ replay, waiting }: { replay: Replay; waiting: boolean }) {
  return (
    <div aria-busy={waiting}>
      <p className="verdict" role="status">
        {replaySentence(replay.asked)}
      </p>
      <table className="figures">
        <thead>
          <tr>
            <th scope="col">
              <span className="spoken">{words.what}</span>
            </th>
            <th scope="col">{words.now}</th>
            <th scope="col">{words.so}</th>
          </tr>
        </thead>
        <tbody>
          {replayRows(replay).map((row) => (
            <tr key={row.name} className={row.better === null ? '' : row.better ? 'better' : 'worse'}>
              <th scope="row">{row.name}</th>
              <td>{row.present}</td>
              <td>{row.asked}</td>
            </tr>
          ))}
        </tbody>
      </table>
      <p className="facts">
        <span>{words.days(formatDuration(replay.toMs - replay.fromMs))}</span>
      </p>
      {replay.notes.map((note) => (
        <p className="note" key={note}>
          {note}
        </p>
      ))}
    </div>
  );
});
