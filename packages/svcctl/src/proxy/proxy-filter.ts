import { errorText } from '@wheelhouse/machinery';
import { RE2JS } from 're2js';
import { CliError } from '../io.ts';

/** Which requests a proxy passes on; each text is a list of expressions joined with commas. */
export interface ProxyFilterFlags {
  readonly acceptHosts: string;
  readonly acceptPaths: string;
  readonly rejectPaths: string;
  readonly rejectMethods: string;
}

export type ProxyFilter = (request: { method: string; path: string; host: string }) => boolean;

/**
 * Makes the filter: paths and hosts must match an accepting expression and nothing may match a
 * rejecting one. A host counts without its port. Throws CliError for a malformed expression.
 */
export function createProxyFilter(flags: ProxyFilterFlags): ProxyFilter {
  const acceptHosts = expressions(flags.acceptHosts);
  const acceptPaths = expressions(flags.acceptPaths);
  const rejectPaths = expressions(flags.rejectPaths);
  const rejectMethods = expressions(flags.rejectMethods);
  return ({ method, path, host }) =>
    !matches(rejectPaths, path) &&
    !matches(rejectMethods, method) &&
    matches(acceptPaths, path) &&
    matches(acceptHosts, host.replace(/:\d*$/, ''));
}

function expressions(list: string): readonly RE2JS[] {
  return list.split(',').map((text) => {
    try {
      return RE2JS.compile(text);
    } catch (error) {
      throw new CliError(`Error compiling re: ${errorText(error)}`);
    }
  });
}

const matches = (list: readonly RE2JS[], text: string): boolean =>
  list.some((one) => one.matcher(text).find());
