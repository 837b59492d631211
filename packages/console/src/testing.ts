/** Internals for tests, benchmarks, and the siege; no stability promise. */

export {
  accessMatrix,
  canI,
  matrixVerbs,
  ownRules,
  subjectText,
  whoAmI,
  whoCan,
} from './browser/model/access.ts';
export {
  deleteAll,
  deleteObject,
  isScalable,
  readScale,
  writeScale,
} from './browser/model/actions.ts';
export { type Api, type ApiRequest, createApi } from './browser/model/api.ts';
export {
  changesBetween,
  changesText,
  mergeChanges,
  pathText,
  threeWay,
} from './browser/model/changes.ts';
export {
  applyManifests,
  type Edit,
  type EditOutcome,
  manifestsIn,
  saveEdit,
  validateEdit,
} from './browser/model/editing.ts';
export { ApiFailure, Unreachable } from './browser/model/failure.ts';
export { ObjectHistory, timelineOf } from './browser/model/insight/history.ts';
export {
  type Activity,
  countedKinds,
  countObjects,
  followActivity,
  followedKinds,
  type KindCount,
  readMetrics,
  trafficBetween,
} from './browser/model/insight/overview.ts';
export { loadTree } from './browser/model/insight/ownership-tree.ts';
export { printJson } from './browser/model/json.ts';
export {
  type Discovered,
  type Kind,
  type ObjectName,
  openDiscovery,
  resourceName,
} from './browser/model/kinds.ts';
export { getCommand, objectCommand } from './browser/model/kubectl.ts';
export { loadObject, ownersOf } from './browser/model/object.ts';
export { fieldOwners, ownersByField } from './browser/model/ownership.ts';
export type { Fetch } from './browser/model/ports.ts';
export { hashOf, type Route, routeOf } from './browser/model/route.ts';
export { createSchemaSource, explain, type KindSchema } from './browser/model/schema.ts';
export { createSession, type SessionState } from './browser/model/session.ts';
export { cellText, filterRows, sortRows, type TableRow } from './browser/model/table.ts';
export {
  openTable,
  openTables,
  type TableQuery,
  type TableSnapshot,
  type TableStore,
} from './browser/model/table-store.ts';
export { completionsAt, schemaFaults } from './browser/model/write/assist.ts';
export {
  linesOfFields,
  printYaml,
  readYaml,
  withoutManagedFields,
} from './browser/model/yaml.ts';
export { createStaticFiles, folderSource } from './static-files.ts';
