// SPDX-License-Identifier: Apache-2.0
package io.taran.interop.sbe;

import io.taran.weather.v1.MetaAttribute;
import io.taran.weather.v1.ReportDecoder;

/** Metadata of a schema as the official codecs report it. */
final class Metadata {
    static String all() {
        return ReportDecoder.measuredMetaAttribute(MetaAttribute.EPOCH)
            + " " + ReportDecoder.measuredMetaAttribute(MetaAttribute.TIME_UNIT)
            + " " + ReportDecoder.measuredMetaAttribute(MetaAttribute.SEMANTIC_TYPE)
            + " " + ReportDecoder.temperatureMetaAttribute(MetaAttribute.SEMANTIC_TYPE)
            + " " + ReportDecoder.temperatureMetaAttribute(MetaAttribute.PRESENCE)
            + " " + ReportDecoder.temperatureMinValue()
            + " " + ReportDecoder.temperatureMaxValue()
            + " " + ReportDecoder.SCHEMA_VERSION
            + " " + ReportDecoder.SEMANTIC_VERSION
            + " " + new ReportDecoder().sbeSemanticType();
    }

    private Metadata() {
    }
}
