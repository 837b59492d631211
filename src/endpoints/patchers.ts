import { isObject, type JsonObject, type JsonValue } from '../base/json.ts';
import { applyJsonPatch, parseJsonPatch } from '../engines/patch/json-patch.ts';
import { applyMergePatch } from '../engines/patch/merge-patch.ts';
