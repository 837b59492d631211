/** The part of the package that does not depend on Node, for browsers. */

export { parseLeniently, readYamlSteps } from './yaml-read.ts';
export { encodeYaml } from './yaml-write.ts';
