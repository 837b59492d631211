/** The part of the package that does not depend on Node, for browsers. */

export { checkDocument } from './yaml-grammar.ts';
export { readTree, treeParsing } from './yaml-tree.ts';
export { encodeYaml } from './yaml-write.ts';
