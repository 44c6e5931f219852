import { fail, ok, type Result } from '../../../shared/errors.ts';
import type { BackendSetting } from '../../../shared/settings.ts';
import { findModel } from '../loop/find-model.ts';
import type { ModelView } from '../loop/model-view.ts';
import { silent } from './admission.ts';

/** Where a request goes: a backend, and the model it means there. */
export interface Route {
  readonly setting: BackendSetting;
  readonly url: string;
  /** null: the request names none that is known; the backend has its own word on it. */
  readonly view: ModelView | null;
  /** What the backend is told as the model; null: what the client said. */
  readonly sentName: string | null;
}

/**
 * By name, alias or `backend/model`. A request that names no model goes to the only backend there is.
 * Errors: `unknown_model`.
 */
export function resolveRoute(
  wanted: string | null,
  views: readonly ModelView[],
  backends: readonly BackendSetting[],
): Result<Route> {
  const withUrl = backends.flatMap((setting) =>
    setting.url === null ? [] : [{ setting, url: setting.url }],
  );
  if (wanted === null || wanted === '') {
    const [only] = withUrl;
    if (only !== undefined && withUrl.length === 1) {
      // What a server of one model is asked can only be for that.
      const view = views.find((one) => one.backend === only.setting.name && one.observed.isOnly === true);
      return ok({ ...only, view: view ?? null, sentName: null });
    }
    const which = views
      .slice(0, 3)
      .map((view) => view.id)
      .join(', ');
    return fail(
      'unknown_model',
      withUrl.length === 0
        ? 'No backend is watched, so there is nobody to send this to.'
        : `The request names no model, and there are ${withUrl.length} backends. Set "model"${which === '' ? '' : `, for instance to one of ${which}`}.`,
    );
  }
  const prefixed = withUrl.find(({ setting }) => wanted.startsWith(`${setting.name}/`));
  const found = findModel(views, wanted);
  const view = found.ok
    ? found.value
    : // An alias after its backend's name.
      views.find(
        (one) =>
          prefixed !== undefined &&
          one.backend === prefixed.setting.name &&
          one.observed.aliases.includes(wanted.slice(prefixed.setting.name.length + 1)),
      );
  if (view === undefined) return found.ok ? fail('unknown_model', `There is no model ${wanted}.`) : found;
  const home = withUrl.find(({ setting }) => setting.name === view.backend);
  if (home === undefined) return fail('unknown_model', `The backend of ${view.id} is no longer watched.`);
  return ok({
    ...home,
    view,
    sentName: wanted === view.id ? view.observed.name : plainName(wanted, home.setting),
  });
}

/** More names than any client uses; they come from requests. */
const MOST_NAMES = 256;

/**
 * What each name means, found once for as long as models and backends stay the same. Of a backend that does not
 * answer no model is listed: a name that it had is then no unknown one, whether anybody has asked for it or not.
 */
export class KnownRoutes {
  readonly #isUp: (backend: string) => boolean;
  /** What each backend listed last. */
  readonly #listed = new Map<string, ModelView[]>();
  #views: readonly ModelView[] | null = null;
  #backends: readonly BackendSetting[] | null = null;
  readonly #routes = new Map<string | null, Result<Route>>();

  constructor(isUp: (backend: string) => boolean) {
    this.#isUp = isUp;
  }

  /** As resolveRoute, for lists that are another array whenever they are another list. Errors: `backend_unreachable` too. */
  resolve(
    wanted: string | null,
    views: readonly ModelView[],
    backends: readonly BackendSetting[],
  ): Result<Route> {
    if (views !== this.#views || backends !== this.#backends || this.#routes.size >= MOST_NAMES)
      this.#routes.clear();
    if (views !== this.#views) this.#remember(views);
    this.#views = views;
    this.#backends = backends;
    const known = this.#routes.get(wanted);
    if (known !== undefined) return known;
    const route = resolveRoute(wanted, views, backends);
    const away = route.ok || wanted === null ? null : this.#silentHome(wanted, backends);
    if (away !== null && wanted !== null) return silent(away, wanted);
    this.#routes.set(wanted, route);
    return route;
  }

  #remember(views: readonly ModelView[]): void {
    for (const { backend } of views) this.#listed.delete(backend);
    for (const view of views) {
      const own = this.#listed.get(view.backend);
      if (own === undefined) this.#listed.set(view.backend, [view]);
      else own.push(view);
    }
  }

  /** null: whose it is answers, or nobody knows. */
  #silentHome(wanted: string, backends: readonly BackendSetting[]): string | null {
    const silents = backends.filter(({ name }) => !this.#isUp(name));
    const home =
      silents.find(({ name }) => wanted.startsWith(`${name}/`)) ??
      silents.find(({ name }) =>
        this.#listed
          .get(name)
          ?.some(({ observed }) => observed.name === wanted || observed.aliases.includes(wanted)),
      );
    return home?.name ?? null;
  }
}

function plainName(wanted: string, setting: BackendSetting): string | null {
  return wanted.startsWith(`${setting.name}/`) ? wanted.slice(setting.name.length + 1) : null;
}

/** On a front port a name means what it means to that backend; one it does not list is its own to refuse. */
export function frontRoute(
  wanted: string | null,
  views: readonly ModelView[],
  setting: BackendSetting,
  url: string,
): Route {
  const own = views.filter((view) => view.backend === setting.name);
  const view =
    own.find((one) => one.observed.name === wanted) ??
    own.find((one) => wanted !== null && one.observed.aliases.includes(wanted)) ??
    // Its only one it serves whatever it is called.
    own.find((one) => one.observed.isOnly === true);
  return { setting, url, view: view ?? null, sentName: null };
}

/** Where a backend's work takes place, for a request that names no model of it; null: not known. */
export function deviceOfBackend(setting: BackendSetting, views: readonly ModelView[]): string | null {
  const own = views.find((view) => view.backend === setting.name && view.deviceId !== null);
  return own?.deviceId ?? setting.device;
}
