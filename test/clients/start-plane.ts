import { type ControlPlaneOptions, startControlPlane } from '@wheelhouse/server';
import { untilEnd } from '../support/cleanup.ts';
import { connect, type ResponseBody } from '../support/harness.ts';

/** Starts a control plane with a client, until the test ends. */
export async function startPlane(options: ControlPlaneOptions = {}) {
  const plane = await untilEnd(startControlPlane(options));
  const { calls } = untilEnd(connect(plane.url));
  const as = { token: plane.token };
  return {
    plane,
    calls,
    get: (path: string) => calls.get(path, as),
    post: <Body = ResponseBody>(path: string, body: unknown) => calls.post<Body>(path, body, as),
    put: (path: string, body: unknown) => calls.put(path, body, as),
    merge: (path: string, body: unknown) => calls.patch(path, body, 'merge', as),
    remove: (path: string) => calls.remove(path, undefined, as),
    watch: (path: string) => calls.watch(path, as),
  };
}
