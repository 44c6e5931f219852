import type { FloorSettings, Settings } from '../../../shared/settings.ts';
import { hostOf, portOf } from './urls.ts';

/** What is wrong between values that are each right by themselves. */
export interface CrossProblem {
  /** Keys and indexes from the top of the config to the value that is to change. */
  readonly path: readonly (string | number)[];
  readonly message: string;
}

export function crossCheck(settings: Settings): readonly CrossProblem[] {
  return [
    ...floorProblems(settings.floor, ['floor']),
    ...(settings.devices ?? []).flatMap((device, index) =>
      device.floor === undefined ? [] : floorProblems(device.floor, ['devices', index, 'floor']),
    ),
    ...backendProblems(settings),
    ...addressProblems(settings),
    ...duplicateNames(settings.backends ?? [], 'backends'),
    ...duplicateNames(settings.fallbacks, 'fallbacks'),
    ...(share(settings.cap) === 0
      ? [{ path: ['cap'], message: 'a cap of nothing would refuse every model; write for instance 90%' }]
      : []),
  ];
}

function share(size: Settings['cap']): number {
  return 'share' in size ? size.share : size.bytes;
}

function floorProblems(floor: FloorSettings, path: readonly (string | number)[]): readonly CrossProblem[] {
  const { keep, hard } = floor;
  const problems: CrossProblem[] = [];
  if (keep !== null && keep !== 'auto' && 'share' in keep && keep.share >= 1) {
    problems.push({
      path,
      message: 'a floor of the whole device leaves no room for a model; write for instance 12.5%',
    });
  }
  if (keep === null || keep === 'auto' || hard === null) return problems;
  const above =
    ('bytes' in keep && 'bytes' in hard && hard.bytes > keep.bytes) ||
    ('share' in keep && 'share' in hard && hard.share > keep.share);
  if (above) {
    problems.push({
      path: [...path, 'hard'],
      message: 'the hard floor is above keep; write a smaller one, or leave it out for half of keep',
    });
  }
  return problems;
}

function backendProblems(settings: Settings): readonly CrossProblem[] {
  return (settings.backends ?? []).flatMap((backend, index) => {
    const at = (key: string) => ['backends', index, key];
    const problems: CrossProblem[] = [];
    const embedded = backend.kind === 'embedded';
    if (!embedded && backend.url === null) {
      problems.push({
        path: ['backends', index],
        message: `backend ${backend.name} has no url; write where it listens, such as url: "http://127.0.0.1:8080"`,
      });
    }
    if (embedded && backend.url !== null) {
      problems.push({ path: at('url'), message: 'the embedded engine has no URL of its own; leave url out' });
    }
    if (!embedded && Object.keys(backend.models).length > 0) {
      problems.push({
        path: at('models'),
        message: `models belongs to kind embedded; ${backend.kind} tells its models by itself, so leave it out`,
      });
    }
    if (backend.start !== undefined && backend.command === null) {
      problems.push({
        path: at('start'),
        message: `start says when a command is run, and backend ${backend.name} has none; write its command, or leave start out`,
      });
    }
    if (backend.front !== null && backend.url !== null && portOf(backend.url) === backend.front) {
      problems.push({
        path: at('front'),
        message: `front is the backend's own port ${backend.front}; write the port before it, or leave front out`,
      });
    }
    return problems;
  });
}

/** Two servers can't listen on one address: one of the two lines is wrong, and a lane would be shared by mistake. */
function addressProblems(settings: Settings): readonly CrossProblem[] {
  const seen = new Map<string, string>([
    [`127.0.0.1:${settings.server.port}`, 'VRAM Landlord itself (server.port)'],
  ]);
  return (settings.backends ?? []).flatMap((backend, index) => {
    if (backend.url === null) return [];
    const host = hostOf(backend.url);
    const claims = [{ key: 'url', port: portOf(backend.url) }];
    if (backend.front !== null && backend.front !== portOf(backend.url)) {
      claims.push({ key: 'front', port: backend.front });
    }
    return claims.flatMap(({ key, port }) => {
      const owner = seen.get(`${host}:${port}`);
      if (owner === undefined) {
        seen.set(`${host}:${port}`, `backend ${backend.name}`);
        return [];
      }
      return [
        {
          path: ['backends', index, key],
          message: `port ${port} already belongs to ${owner}; write the port this one listens on`,
        },
      ];
    });
  });
}

function duplicateNames(
  entries: readonly { readonly name: string }[],
  list: string,
): readonly CrossProblem[] {
  return entries.flatMap((entry, index) =>
    entries.findIndex((other) => other.name === entry.name) === index
      ? []
      : [{ path: [list, index, 'name'], message: `the name ${entry.name} is taken; give this one another` }],
  );
}
