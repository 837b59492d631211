/** The API server as a library. */

export { startControlPlane } from './plane/control-plane.ts';
export type { ControlPlane } from './plane/types.ts';
