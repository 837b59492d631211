/** The web console, as files that a server serves. */

export { loadStaticFiles } from './lazy.ts';
export {
  consolePath,
  createStaticFiles,
  type FileSource,
  folderSource,
  type StaticFiles,
} from './static-files.ts';
