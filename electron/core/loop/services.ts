import { fail, ok, type Result } from '../../../shared/errors.ts';
import type { Units } from '../actuators/units.ts';
import { hostAndPort, isThisMachine } from '../backends/own-address.ts';
import type { Sampler } from '../devices/sampler.ts';
import type { Fleet } from './fleet.ts';

/** How a backend's server is started anew. */
export interface Service {
  /** For a sentence: `its service llama.service`. */
  readonly what: string;
  restart(): Promise<Result<void>>;
}

export interface Services {
  /** Errors say why it can't be. */
  of(backend: string): Promise<Result<Service>>;
}

/** Servers of ours through their keeper, others through the systemd service that keeps what listens at their port. */
export function servicesOf(fleet: Fleet, sampler: () => Sampler, units: Units): Services {
  return {
    async of(name) {
      const backend = fleet.get(name);
      const setting = fleet.setting(name);
      if (backend === null || setting === null)
        return fail('unknown_backend', `The backend ${name} is no longer watched.`);
      const { restart } = backend;
      if (setting.command !== null && restart !== undefined)
        return ok({
          what: `the server of ${name}, which VRAM Landlord runs`,
          restart: async () => ok(await restart()),
        });
      const { host, port } = hostAndPort(backend.url);
      if (!isThisMachine(host)) return fail('not_supported', `${name} is on another machine.`);
      const found = await sampler().find({ port, alias: null, routerPort: null });
      if (!found.ok) return found;
      const [server] = found.value.filter((one) => one.listeningPorts?.includes(port) === true);
      if (server === undefined)
        return fail('not_proven', `No process of ours can be seen to listen at port ${port}.`);
      const unit = await units.of(server.pid);
      if (!unit.ok) return unit;
      const whose = unit.value.scope === 'user' ? 'your service' : 'the system service';
      return ok({ what: `${whose} ${unit.value.name}`, restart: () => units.restart(unit.value) });
    },
  };
}
