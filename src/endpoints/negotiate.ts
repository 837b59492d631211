import type { Exchange } from '../base/exchange.ts';
import type { RequestInfo } from '../request/request-info.ts';
import { jsonOutput, type Output } from './output.ts';
export function negotiateOutput(_exchange: Exchange, _info: RequestInfo): Output { return jsonOutput; }
export function aggregatedVersionOf(_accept: string | undefined): 'v2' | 'v2beta1' | undefined { return undefined; }
