/** The API server as a library. */

export { type ControlPlane, startControlPlane } from './library.ts';
