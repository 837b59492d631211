/** The part of the package that needs nothing of Node, for code that runs in a browser. */

export { readTree, treeParsing } from './yaml-tree.ts';
export { encodeYaml } from './yaml-write.ts';
