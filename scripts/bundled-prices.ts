/**
 * `npm run prices`: writes src/services/catalog/bundled-prices.json, the prices of the bundled catalog's models, from the
 * installed release of the price library. Run it after updating that package, and read the difference before committing it.
 */
import { writeFileSync } from "node:fs";
import { resolve } from "node:path";
import { toPriceListText } from "./price-list.js";

const file = resolve("src/services/catalog/bundled-prices.json");
writeFileSync(file, toPriceListText());
console.log(`wrote ${file}`);
