import { useState } from 'react';
import { ok, type Result } from '../../shared/errors.ts';
import type { DeviceState } from '../../shared/state.ts';
import { sizeYaml } from '../change-setting.ts';
import { strings } from '../strings.ts';
import { bytesText, hostOf } from '../view/figures.ts';
import { withBackend } from '../view/settings.ts';
import { shown } from '../view/shown.ts';
import { usualFloor } from '../view/start.ts';
import { AddModel } from './add-model.tsx';
import { useModel, useReplica } from './context.ts';
import { TestTurn } from './test-turn.tsx';
import { useJob } from './use-job.ts';

const words = strings.start;

type Floor = 'standard' | 'more' | 'auto';

/** Device, floor, servers, one big model or as many as fit, observe or guard, and one turn to try it all. */
export function StartPage() {
  const { ask } = useModel();
  const devices = useReplica(({ state }) => state?.devices ?? []);
  const backends = useReplica(({ state }) => state?.backends ?? []);
  const [floor, setFloor] = useState<Floor>('standard');
  const [big, setBig] = useState<'fit' | 'one'>('fit');
  const [guards, setGuards] = useState<'observe' | 'on'>('observe');
  const [job, run] = useJob();
  const main = [...devices].sort((a, b) => (b.totalBytes ?? 0) - (a.totalBytes ?? 0))[0];
  const usual = usualFloor(main?.totalBytes ?? null);
  const write = async (): Promise<Result<unknown>> => {
    const found = backends.filter((one) => one.found && one.status === 'up');
    const changes: readonly (readonly [string, string])[] = [
      ['floor', floor === 'auto' ? 'auto' : sizeYaml(floor === 'more' ? usual * 1.5 : usual)],
      ['maxBig', big === 'one' ? '1' : 'fit'],
      ['guards', guards],
      ...(found.length === 0
        ? []
        : [
            [
              'backends',
              found.reduce<string | null>((yaml, one) => withBackend(yaml, one), null) ?? '',
            ] as const,
          ]),
    ];
    const now = await ask('settings', {});
    if (!now.ok) return now;
    let { fingerprint } = now.value;
    for (const [key, yaml] of changes) {
      const before = now.value.entries.find((entry) => entry.key === key)?.yaml ?? null;
      // Servers that a person has named already stay named.
      if (key === 'backends' && before !== null) continue;
      const changed = await ask('changeSetting', { key, yaml, fingerprint });
      if (!changed.ok) return changed;
      fingerprint = changed.value.fingerprint;
    }
    return ok(null);
  };
  return (
    <section className="card start" aria-labelledby="start-title">
      <h2 id="start-title">{words.title}</h2>
      <h3>{words.device}</h3>
      {devices.length === 0 ? <p>{words.noDevice}</p> : devices.map(Device)}
      <Options
        legend={words.floor}
        value={floor}
        options={{
          standard: words.floorChoices.standard(bytesText(usual)),
          more: words.floorChoices.more(bytesText(usual * 1.5)),
          auto: words.floorChoices.auto,
        }}
        choose={(key) => setFloor(key === 'more' || key === 'auto' ? key : 'standard')}
      />
      <h3>{words.backends}</h3>
      {backends.length === 0 && <p>{words.backendsNone}</p>}
      <ul>
        {backends.map((backend) => (
          <li key={backend.name}>
            {backend.kind === 'embedded'
              ? words.engine
              : strings.settings.foundOne(shown(backend.name), backend.kind, hostOf(backend.url))}
          </li>
        ))}
      </ul>
      <AddModel />
      <Options
        legend={words.bigs}
        value={big}
        options={words.bigChoices}
        choose={(key) => setBig(key === 'one' ? 'one' : 'fit')}
      />
      <Options
        legend={words.guards}
        value={guards}
        options={words.guardChoices}
        choose={(key) => setGuards(key === 'on' ? 'on' : 'observe')}
      />
      <div className="buttons">
        <button type="button" className="main" aria-busy={job.kind === 'running'} onClick={() => run(write)}>
          {words.write}
        </button>
      </div>
      {job.kind === 'done' && (
        <p className="saved" role="status">
          {words.written}
        </p>
      )}
      {job.kind === 'failed' && (
        <p className="refusal" role="alert">
          {job.message}
        </p>
      )}
      <TestTurn />
      <p>
        <a href="#now">{words.toNow}</a>
      </p>
    </section>
  );
}

function Device({ id, name, totalBytes, drivesDisplay }: DeviceState) {
  return (
    <p key={id}>
      {words.deviceOne(name, bytesText(totalBytes))} {drivesDisplay === true && words.drives}
    </p>
  );
}

function Options({
  legend,
  value,
  options,
  choose,
}: {
  legend: string;
  value: string;
  options: Readonly<Record<string, string>>;
  choose: (key: string) => void;
}) {
  return (
    <fieldset className="options">
      <legend>{legend}</legend>
      {Object.entries(options).map(([key, label]) => (
        <label key={key} className="check">
          <input type="radio" name={legend} checked={value === key} onChange={() => choose(key)} />
          {label}
        </label>
      ))}
    </fieldset>
  );
}
