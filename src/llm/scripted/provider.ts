/** The `scripted` provider's line in the registry. */
import { SysError } from "../../base/errors.ts";
import type { Provider } from "../provider.ts";
import { parseScript } from "./script.ts";
import { ScriptedModel } from "./scripted_model.ts";

export const scripted: Provider = {
  name: "scripted",
  make({ script }, clock) {
    if (script === undefined) {
      throw new SysError("INVALID", 'Provider "scripted" needs a script', {
        hint: 'Name its file under "models": script: FILE',
      });
    }
    return new ScriptedModel(parseScript(script.name, script.text), clock);
  },
};
