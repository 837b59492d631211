import path from 'node:path';
import { CliError } from './io.ts';

/** Whether a path of this machine is a folder or is in it. */
export function isWithin(folder: string, place: string): boolean {
  const relative = path.relative(folder, place);
  return relative !== '..' && !relative.startsWith(`..${path.sep}`) && !path.isAbsolute(relative);
}

/**
 * The path of a file in a folder. Throws CliError if the name, which a server may have sent, leads
 * out of the folder.
 */
export function pathWithin(folder: string, name: string): string {
  const file = path.join(folder, name);
  if (isWithin(folder, file)) return file;
  throw new CliError(`the file ${JSON.stringify(name)} is outside of its folder`);
}
