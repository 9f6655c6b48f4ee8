// SPDX-License-Identifier: Apache-2.0
package io.taran.interop.sbe;

import io.taran.weather.VERSION.*;
import io.taran.weather.VERSION.units.*;
import org.agrona.concurrent.UnsafeBuffer;

/**
 * The reports that the tests of crates/sbe/codecs write, in one version of their schema, whose types are in a package of
 * their own. Garage describes how the versions are generated.
 */
final class Weather_VERSION {
    static int write(final UnsafeBuffer buffer) {
        final ReportEncoder report = begin(buffer);
        report.temperature((short)-55)
            .grade((byte)'A')
            .pressure(1013.25)
            .putGusts(1.5f, Float.NaN, 2.5f)
            .putHours(6, -1)
            .putProbe((short)1, (short)200, (short)3)
            .mark("AB")
            .sky(Sky.Clear)
            .trend(Trend.Falling);
        report.wind().speed(120).trend(Trend.Rising);
        report.humidity((short)80).putHistory(-1, 7); // v1
        final ReportEncoder.ReadingsEncoder readings = report.readingsCount(2);
        readings.next().hour((short)6).temperature((short)-60);
        readings.wind().speed(WindEncoder.speedNullValue()).trend(Trend.NULL_VAL); // v1
        readings.next().hour((short)12).temperature(ReportEncoder.ReadingsEncoder.temperatureNullValue());
        readings.wind().speed(90).trend(Trend.Falling); // v1
        final ReportEncoder.AlertsEncoder alerts = report.alertsCount(2); // v1
        alerts.next().trend(Trend.Rising).hoursCount(2).next().hour((short)3).next().hour((short)4); // v1
        alerts.text("Gl\u00e4tte"); // v1
        alerts.next().trend(Trend.NULL_VAL).hoursCount(0); // v1
        alerts.text(""); // v1
        report.remark("late"); // v1
        return MessageHeaderEncoder.ENCODED_LENGTH + report.encodedLength();
    }

    /** Writes null to every optional field. */
    static int writeNone(final UnsafeBuffer buffer) {
        final ReportEncoder report = begin(buffer);
        final int hour = ReportEncoder.hoursNullValue();
        final float gust = ReportEncoder.gustsNullValue();
        final short probe = ReportEncoder.probeNullValue();
        final byte mark = ReportEncoder.markNullValue();
        report.temperature(ReportEncoder.temperatureNullValue())
            .grade(ReportEncoder.gradeNullValue())
            .pressure(ReportEncoder.pressureNullValue())
            .putGusts(gust, gust, gust)
            .putHours(hour, hour)
            .putProbe(probe, probe, probe)
            .putMark(mark, mark, mark, mark)
            .sky(Sky.NULL_VAL)
            .trend(Trend.NULL_VAL);
        report.wind().speed(WindEncoder.speedNullValue()).trend(Trend.NULL_VAL);
        report.humidity(ReportEncoder.humidityNullValue()); // v1
        report.putHistory(ReportEncoder.historyNullValue(), ReportEncoder.historyNullValue()); // v1
        report.readingsCount(0);
        report.alertsCount(0); // v1
        report.remark(""); // v1
        return MessageHeaderEncoder.ENCODED_LENGTH + report.encodedLength();
    }

    private static ReportEncoder begin(final UnsafeBuffer buffer) {
        final ReportEncoder report = new ReportEncoder();
        return report.wrapAndApplyHeader(buffer, 0, new MessageHeaderEncoder()).measured(0x0102030405060708L);
    }

    static String read(final UnsafeBuffer buffer) {
        final ReportDecoder report = new ReportDecoder().wrapAndApplyHeader(buffer, 0, new MessageHeaderDecoder());
        return "usual=" + report.usual() + "|level=" + report.level() + "|" + report;
    }

    private Weather_VERSION() {
    }
}
